package git_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/git"
)

// TestCompare is about how commits stand to each other, on a server that can leave
// out files and on one that cannot.
func TestCompare(t *testing.T) {
	f := newFixture(t)
	root := f.commit("root", map[string]string{"a": "1"})
	old := f.commit("old", map[string]string{"a": "2"})
	next := f.commit("next", map[string]string{"a": "3"})
	f.git("checkout", "--quiet", "-b", "side", root)
	side := f.commit("side", map[string]string{"b": "1"})
	f.git("merge", "--quiet", "--no-edit", old)
	f.git("push", "--quiet", "origin", "HEAD")
	merged := f.git("rev-parse", "HEAD")
	f.git("checkout", "--quiet", "--orphan", "other")
	other := f.commit("other", map[string]string{"c": "1"})
	var stream strings.Builder
	for n := range 1100 {
		fmt.Fprintf(&stream, "commit refs/heads/long\ncommitter a <a@b> %d +0000\ndata 1\nx\n", 1_900_000_000+n) // later than root: servers trust in dates
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
			before, now string
			want        lineage.Relation
		}{
			"the same":                      {old, old, lineage.Ahead},
			"the next one":                  {old, next, lineage.Ahead},
			"one further on":                {root, next, lineage.Ahead},
			"by a merge":                    {old, merged, lineage.Ahead},
			"moved back":                    {next, root, lineage.Behind},
			"rewritten":                     {old, side, lineage.Aside},
			"without anything in common":    {old, other, lineage.Aside},
			"the earlier one is gone":       {strings.Repeat("1", 40), next, lineage.Aside},
			"far behind":                    {long, root, lineage.Behind},
			"rewritten by far more commits": {next, long, lineage.Unknown},
			"far ahead":                     {root, long, lineage.Unknown},
		} {
			t.Run(name+", filters "+filters, func(t *testing.T) {
				remote := f.remote(f.url, git.Credentials{}, git.Options{})
				now, err := remote.Resolve(t.Context(), git.Ref{Commit: tc.now})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := git.Compare(t.Context(), remote, tc.before, now); got != tc.want || err != nil {
					t.Errorf("%d, %v; want %d", got, err, tc.want)
				}
			})
		}
	}
}

// TestCompareWithoutFiles: of a large commit nothing but the commit is transferred.
func TestCompareWithoutFiles(t *testing.T) {
	f := newFixture(t)
	if _, err := gitserver.Git(t.Context(), f.root, "-C", f.root+"/app.git", "config", "uploadpack.allowFilter", "true"); err != nil {
		t.Fatal(err)
	}
	old := f.commit("old", map[string]string{"a": "1"})
	next := f.commit("next", map[string]string{"b": noise(t, 1<<20)})
	var wire wireCount
	remote := f.remote(f.url, git.Credentials{}, git.Options{Egress: wire.dialer()})
	sent := wire.since(func() {
		if got, err := git.Compare(t.Context(), remote, old, git.Commit{Hash: next}); got != lineage.Ahead || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	})
	if sent > 4<<10 {
		t.Errorf("%d bytes were sent", sent)
	}
}

// TestCompareOnAnOldServer: what cannot be found out is no error, and what is no
// commit is one.
func TestCompareOnAnOldServer(t *testing.T) {
	f := newFixture(t)
	old := f.commit("old", map[string]string{"a": "1"})
	next := f.commit("next", map[string]string{"a": "2"})
	remote := f.remote(f.oldServer(), git.Credentials{}, git.Options{})
	if got, err := git.Compare(t.Context(), remote, old, git.Commit{Hash: next}); got != lineage.Unknown || err != nil {
		t.Errorf("%d, %v; want that it is not known", got, err)
	}
	if _, err := git.Compare(t.Context(), remote, "HEAD", git.Commit{Hash: next}); err == nil {
		t.Error("a name was compared")
	}
}
