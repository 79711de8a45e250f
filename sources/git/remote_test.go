package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/git"
)

func TestResolve(t *testing.T) {
	f := newFixture(t)
	first := f.commit("one", map[string]string{"a.yaml": "one\n"})
	f.git("tag", "v1.0.0")
	f.git("tag", "-a", "v1.2.0", "-m", "annotated")
	second := f.commit("two", map[string]string{"a.yaml": "two\n"})
	f.git("tag", "v2.0.0-rc.1")
	f.git("push", "--quiet", "--tags")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/feature/x@y", "HEAD:refs/pull/7/head")

	cases := map[string]struct {
		ref     git.Ref
		want    string
		wantErr error
		says    string
	}{
		"a branch":                               {ref: git.Ref{Branch: "main"}, want: "main@sha1:" + second},
		"a branch with a slash and an at":        {ref: git.Ref{Branch: "feature/x@y"}, want: "feature/x@y@sha1:" + second},
		"no ref means master":                    {ref: git.Ref{}, wantErr: git.ErrRefNotFound, says: "branch master"},
		"a branch that is not there names some":  {ref: git.Ref{Branch: "dev"}, wantErr: git.ErrRefNotFound, says: "feature/x@y, main"},
		"a tag":                                  {ref: git.Ref{Tag: "v1.0.0"}, want: "v1.0.0@sha1:" + first},
		"an annotated tag gives the commit":      {ref: git.Ref{Tag: "v1.2.0"}, want: "v1.2.0@sha1:" + first},
		"a tag beats a branch":                   {ref: git.Ref{Branch: "main", Tag: "v1.0.0"}, want: "v1.0.0@sha1:" + first},
		"a range takes the highest":              {ref: git.Ref{Tag: "v1.0.0", SemVer: ">=1.0.0"}, want: "v1.2.0@sha1:" + first},
		"a range with -0 takes pre-releases":     {ref: git.Ref{SemVer: ">=1.0.0-0"}, want: "v2.0.0-rc.1@sha1:" + second},
		"a range that nothing is in":             {ref: git.Ref{SemVer: "9.x"}, wantErr: git.ErrRefNotFound, says: "no tag is within it"},
		"a malformed range":                      {ref: git.Ref{SemVer: "not a range"}, wantErr: git.ErrRef},
		"a full name beats a range":              {ref: git.Ref{SemVer: "9.x", Name: "refs/pull/7/head"}, want: "refs/pull/7/head@sha1:" + second},
		"a full name of a branch stays full":     {ref: git.Ref{Name: "refs/heads/main"}, want: "refs/heads/main@sha1:" + second},
		"a commit beats a full name":             {ref: git.Ref{Name: "refs/pull/7/head", Commit: first}, want: "sha1:" + first},
		"a commit in a branch shows the branch":  {ref: git.Ref{Branch: "main", Commit: first}, want: "main@sha1:" + first},
		"a commit that is no hash":               {ref: git.Ref{Commit: "HEAD~1"}, wantErr: git.ErrRef},
		"a full name that is not there":          {ref: git.Ref{Name: "refs/pull/8/head"}, wantErr: git.ErrRefNotFound},
		"an annotated tag by its peeled name":    {ref: git.Ref{Name: "refs/tags/v1.2.0^{}"}, want: "refs/tags/v1.2.0@sha1:" + first},
		"a tag that was removed, last seen as v": {ref: git.Ref{Tag: "v0.9.0"}, wantErr: git.ErrRefNotFound, says: "tag v0.9.0"},
	}
	remote := f.remote(f.url, git.Credentials{}, git.Options{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := remote.Resolve(t.Context(), tc.ref)
			if !errors.Is(err, tc.wantErr) || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Fatalf("error = %v, want %v saying %q", err, tc.wantErr, tc.says)
			}
			if diff := cmp.Diff(tc.want, got.Revision().String()); diff != "" {
				t.Errorf("revision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveAsksOnce(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a.yaml": "one\n"})
	opts := git.Options{Kept: git.NewKept(git.KeptOptions{})}
	for _, want := range []int64{2, 1, 1} { // at first, what the server can do
		before := f.server.Requests()
		if _, err := f.remote(f.url, git.Credentials{}, opts).Resolve(t.Context(), git.Ref{Branch: "main"}); err != nil {
			t.Fatal(err)
		}
		if got := f.server.Requests() - before; got != want {
			t.Errorf("%d requests for an unchanged repository, want %d", got, want)
		}
	}
}

func TestEmptyRepository(t *testing.T) {
	f := newFixture(t)
	_, err := f.remote(f.url, git.Credentials{}, git.Options{}).Resolve(t.Context(), git.Ref{Branch: "main"})
	if !errors.Is(err, git.ErrRefNotFound) || !strings.Contains(err.Error(), "no branches: push one") {
		t.Errorf("error = %v, want one that says that there are no branches", err)
	}
}

func TestFetch(t *testing.T) {
	f := newFixture(t)
	old := f.commit("one", map[string]string{"a.yaml": "old\n", "sub/b.yaml": "b\n"})
	f.commit("two", map[string]string{"a.yaml": "new\n", "sub/deep/c.yaml": strings.Repeat("long line\n", 1000)})
	tip := f.commit("three", map[string]string{"sub/deep/c.yaml": strings.Repeat("long line\n", 999) + "changed\n"})
	remote := f.remote(f.url, git.Credentials{}, git.Options{})

	cases := map[string]struct {
		ref  git.Ref
		want map[string]string
	}{
		"the tip of a branch": {
			ref:  git.Ref{Branch: "main"},
			want: map[string]string{"a.yaml": "new\n", "sub/b.yaml": "b\n", "sub/deep/c.yaml": strings.Repeat("long line\n", 999) + "changed\n"},
		},
		"an older commit of a branch": {
			ref:  git.Ref{Branch: "main", Commit: old},
			want: map[string]string{"a.yaml": "old\n", "sub/b.yaml": "b\n"},
		},
		"an older commit of no branch": {
			ref:  git.Ref{Commit: old},
			want: map[string]string{"a.yaml": "old\n", "sub/b.yaml": "b\n"},
		},
		"the tip by its hash": {
			ref:  git.Ref{Commit: tip},
			want: map[string]string{"a.yaml": "new\n", "sub/b.yaml": "b\n", "sub/deep/c.yaml": strings.Repeat("long line\n", 999) + "changed\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			commit, err := remote.Resolve(t.Context(), tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := remote.Fetch(t.Context(), commit)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			got := map[string]string{}
			var names []string
			err = fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				content, err := fs.ReadFile(tree, path)
				got[path] = string(content)
				names = append(names, path)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if err := fstest.TestFS(tree, names...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFetchOfAVanishedCommit(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	gone := strings.Repeat("12", 20)
	for name, ref := range map[string]git.Ref{"of no branch": {Commit: gone}, "of a branch": {Branch: "main", Commit: gone}, "of a branch that is not there": {Branch: "dev", Commit: gone}} {
		t.Run(name, func(t *testing.T) {
			remote := f.remote(f.url, git.Credentials{}, git.Options{})
			commit, err := remote.Resolve(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := remote.Fetch(t.Context(), commit); !errors.Is(err, git.ErrRefNotFound) {
				t.Errorf("error = %v, want ErrRefNotFound", err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	f := newFixture(t)
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("f%d.yaml", i)] = fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 10_000))
	}
	f.commit("many", files)
	cases := map[string]struct {
		limits git.Limits
		says   string
	}{
		"a list of refs that is too long": {limits: git.Limits{Refs: 100}, says: "list of refs over 100 bytes"},
		"a transfer that is too long":     {limits: git.Limits{Pack: 500}, says: "transfer over 500 bytes"},
		"too many objects":                {limits: git.Limits{Objects: 10}, says: "10 are allowed"},
		"an object that is too large":     {limits: git.Limits{Object: 9_000}, says: "an object of"},
		"too much once unpacked":          {limits: git.Limits{Unpacked: 100_000}, says: "unpacks to over 100000 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remote := f.remote(f.url, git.Credentials{}, git.Options{Limits: tc.limits})
			commit, err := remote.Resolve(t.Context(), git.Ref{Branch: "main"})
			if err == nil {
				_, err = remote.Fetch(t.Context(), commit)
			}
			if !errors.Is(err, git.ErrTooLarge) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v, want ErrTooLarge saying %q", err, tc.says)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	f := newFixture(t)
	hang := hangingServer(t)
	remote := f.remote(hang, git.Credentials{}, git.Options{Timeout: 50 * time.Millisecond})
	_, err := remote.Resolve(t.Context(), git.Ref{Branch: "main"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("error = %v, want one that names the time that passed", err)
	}
}

func TestURLs(t *testing.T) {
	for name, raw := range map[string]string{
		"the scp form":               "git@example.com:org/repo.git",
		"a local path":               "/srv/repo.git",
		"a file URL":                 "file:///srv/repo.git",
		"an external transport":      "ext::sh -c date",
		"no host":                    "https:///repo",
		"no repository":              "https://example.com/",
		"a host that is an option":   "ssh://-oProxyCommand=x/repo",
		"a path that is an option":   "ssh://git@example.com/-upload-pack=x",
		"a line break":               "https://example.com/a\nb",
		"git's own unsafe protocol":  "git://example.com/repo.git",
		"a line break, once decoded": "https://example.com/a%0Ab",
		"a query":                    "https://example.com/org/repo?token=CANARY",
		"a fragment":                 "https://example.com/org/repo#main",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := git.NewRemote(raw, git.Credentials{}, git.Options{}); !errors.Is(err, git.ErrURL) {
				t.Errorf("NewRemote(%q) = %v, want ErrURL", raw, err)
			}
		})
	}
}

func TestMaskURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://user:CANARY@example.com/x": "https://***@example.com/x",
		"https://CANARY@example.com/x":      "https://***@example.com/x",
		"https://example.com/x":             "https://example.com/x",
		"https://u:CANARY@exa mple.com/x":   "https://***@exa mple.com/x",
		"https://u:CANA/RY@example.com/x":   "https://***@example.com/x",
		"https://u:CANA RY@example.com/x":   "https://***@example.com/x",
		"https://u:CANA@RY@example.com/x":   "https://***@example.com/x",
		"https:u:CANARY@example.com/x":      "https:***@example.com/x",
		"https://example.com/x?t=CANARY":    "https://example.com/x?***",
		"https://u#CANARY@example.com/x":    "https://u#***",
	} {
		if got := git.MaskURL(raw); got != want {
			t.Errorf("MaskURL(%q) = %q, want %q", raw, got, want)
		}
	}
}
