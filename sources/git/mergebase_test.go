package git_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/git"
)

// TestMergeBase is about where a branch left another one, on a server that can leave out files and on one that cannot.
func TestMergeBase(t *testing.T) {
	f := newFixture(t)
	root := f.commit("root", map[string]string{"a": "1"})
	one := f.commit("one", map[string]string{"a": "2"})
	two := f.commit("two", map[string]string{"a": "3"})
	three := f.commit("three", map[string]string{"a": "4"})
	side := func(name, from string) string {
		f.git("checkout", "--quiet", "-b", name, from)
		return f.commit(name, map[string]string{name: "1"})
	}
	plain := side("plain", one)
	side("merging", root)
	f.git("merge", "--quiet", "--no-edit", one)
	f.git("merge", "--quiet", "--no-edit", two)
	merging := f.commit("more", map[string]string{"merging": "2"})
	f.git("checkout", "--quiet", "--orphan", "other")
	other := f.commit("other", map[string]string{"c": "1"})
	// Two branches that have each taken up the first commit of the other one have two latest commits in common.
	left := side("left", root)
	right := side("right", root)
	f.git("merge", "--quiet", "--no-edit", left)
	f.git("push", "--quiet", "origin", "HEAD")
	crossRight := f.git("rev-parse", "HEAD")
	f.git("checkout", "--quiet", "left")
	f.git("merge", "--quiet", "--no-edit", right)
	f.git("push", "--quiet", "origin", "HEAD")
	crossLeft := f.git("rev-parse", "HEAD")
	var stream strings.Builder
	for n := range 1100 {
		fmt.Fprintf(&stream, "commit refs/heads/long\ncommitter a <a@b> %d +0000\ndata 1\nx\n", 1_900_000_000+n)
		if n == 0 {
			fmt.Fprintf(&stream, "from %s\n", root)
		}
		stream.WriteString("\n")
	}
	f.fastImport(stream.String())
	f.git("push", "--quiet", "origin", "long")
	long := f.git("rev-parse", "long")
	for _, filters := range []string{"true", "false"} {
		if _, err := gitserver.Git(t.Context(), f.root, "-C", f.root+"/app.git", "config", "uploadpack.allowFilter", filters); err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct {
			onto, branch, want string
		}{
			"the same":                          {three, three, three},
			"a branch that is up to date":       {one, plain, one},
			"a branch that is behind":           {three, plain, one},
			"one that is in the other":          {three, one, one},
			"one that took up the other, twice": {three, merging, two},
			"nothing in common":                 {three, other, ""},
			"both took up the other":            {crossLeft, crossRight, ""},
			"too much in between":               {three, long, ""},
		} {
			t.Run(name+", filters "+filters, func(t *testing.T) {
				remote := f.remote(f.url, git.Credentials{}, git.Options{})
				got, err := git.MergeBase(t.Context(), remote, git.Commit{Hash: tc.onto}, git.Commit{Hash: tc.branch})
				if got != tc.want || (err == nil) != (tc.want != "") || err != nil && !errors.Is(err, git.ErrNoMergeBase) {
					t.Errorf("%q, %v; want %q", got, err, tc.want)
				}
			})
		}
	}
}

// TestLine is about what a branch was at since an earlier commit.
func TestLine(t *testing.T) {
	f := newFixture(t)
	root := f.commit("root", map[string]string{"a": "1"})
	one := f.commit("one", map[string]string{"a": "2"})
	f.git("checkout", "--quiet", "-b", "side", root)
	side := f.commit("side", map[string]string{"b": "1"})
	f.git("checkout", "--quiet", "main")
	f.git("merge", "--quiet", "--no-edit", side)
	merged := f.git("rev-parse", "HEAD")
	two := f.commit("two", map[string]string{"a": "3"})
	f.git("checkout", "--quiet", "--orphan", "other")
	other := f.commit("other", map[string]string{"c": "1"})
	for _, filters := range []string{"true", "false"} {
		if _, err := gitserver.Git(t.Context(), f.root, "-C", f.root+"/app.git", "config", "uploadpack.allowFilter", filters); err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct {
			before, now string
			want        []string
		}{
			"nothing in between":                     {two, two, nil},
			"one after the other":                    {root, one, []string{one}},
			"what was merged in between":             {one, two, []string{merged, two}},
			"all of it":                              {root, two, []string{one, merged, two}},
			"from a commit that was merged":          {side, two, nil},
			"back":                                   {two, one, nil},
			"another history":                        {other, two, nil},
			"a commit that the server has no more":   {strings.Repeat("1", 40), two, nil},
			"a commit that the server does not have": {root, strings.Repeat("1", 40), nil},
		} {
			t.Run(name+", filters "+filters, func(t *testing.T) {
				got, err := git.Line(t.Context(), f.remote(f.url, git.Credentials{}, git.Options{}), tc.before, git.Commit{Hash: tc.now})
				if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
	if got, err := git.Line(t.Context(), f.remote(f.url, git.Credentials{}, git.Options{}), "main", git.Commit{Hash: two}); err == nil {
		t.Errorf("from what is no commit: %v", got)
	}
}
