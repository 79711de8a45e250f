package refs_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/planning/refs"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// clone is a repository with a worktree.
type clone struct {
	t   *testing.T
	dir string
}

func newClone(t *testing.T) clone {
	t.Helper()
	c := clone{t, t.TempDir()}
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"} {
		t.Setenv(name, value)
	}
	c.git("init", "-q", "-b", "main")
	return c
}

func (c clone) git(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = c.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c clone) write(name, content string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c clone) commit(message string) string {
	c.t.Helper()
	c.git("add", "-A")
	c.git("commit", "-q", "--allow-empty", "-m", message)
	return c.git("rev-parse", "HEAD")
}

// read returns the files of a revision, and its commit.
func read(t *testing.T, dir, revision string) (map[string]string, refs.Commit) {
	t.Helper()
	r, err := refs.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := r.Commit(t.Context(), revision)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Files(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	files, err := artifact.Collect(t.Context(), tree, artifact.Selection{}, artifact.Limits{})
	if err := errors.Join(err, tree.Close()); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, content := range files.Contents() {
		out[name] = string(content)
	}
	for _, name := range files.Links() {
		out[name] = "a link"
	}
	return out, commit
}

// TestFiles: the files of a revision are those of its commit, whatever is in the worktree, which stays as it is.
func TestFiles(t *testing.T) {
	c := newClone(t)
	c.write("all.yaml", "one\n")
	c.write("deploy/app/web.yaml", "two\n")
	c.write("deploy/empty", "")
	c.write("binary", "\x00\n\x00blob 3\n")
	if err := os.Symlink("all.yaml", filepath.Join(c.dir, "link")); err != nil {
		t.Fatal(err)
	}
	hash := c.commit("First\n\nFlotilla-Allow-Delete: namespace/shop")
	c.git("tag", "-a", "v1", "-m", "a tag")
	c.git("switch", "-q", "-c", "feature/x")
	c.write("all.yaml", "three\n")
	later := c.commit("Second")
	c.write("all.yaml", "not committed\n")
	c.write("untracked.yaml", "x")
	before := c.git("status", "--porcelain") + c.git("stash", "list")

	want := map[string]string{"all.yaml": "one\n", "deploy/app/web.yaml": "two\n", "deploy/empty": "", "binary": "\x00\n\x00blob 3\n", "link": "a link"}
	changed := maps.Clone(want)
	changed["all.yaml"] = "three\n"
	for revision, tc := range map[string]struct {
		name  string
		files map[string]string
	}{
		"main":      {"main@sha1:" + hash, want},
		"v1":        {"v1@sha1:" + hash, want},
		hash[:9]:    {"sha1:" + hash, want},
		"feature/x": {"feature/x@sha1:" + later, changed},
		"HEAD~1":    {"HEAD~1@sha1:" + hash, want},
	} {
		files, commit := read(t, c.dir, revision)
		if diff := cmp.Diff(tc.files, files); diff != "" || commit.Revision != tc.name {
			t.Errorf("%s is %s, want %s; files (-want +got):\n%s", revision, commit.Revision, tc.name, diff)
		}
	}
	files, commit := read(t, filepath.Join(c.dir, "deploy"), "main")
	if diff := cmp.Diff(map[string]string{"app/web.yaml": "two\n", "empty": ""}, files); diff != "" {
		t.Errorf("a folder of the repository (-want +got):\n%s", diff)
	}
	if !strings.Contains(commit.Message, "Flotilla-Allow-Delete: namespace/shop") {
		t.Errorf("message = %q", commit.Message)
	}
	if after := c.git("status", "--porcelain") + c.git("stash", "list"); after != before {
		t.Errorf("the worktree was touched: before\n%s\nafter\n%s", before, after)
	}
}

// TestBase: where a branch left another one.
func TestBase(t *testing.T) {
	c := newClone(t)
	root := c.commit("root")
	c.git("switch", "-q", "-c", "change")
	c.commit("change")
	c.git("switch", "-q", "main")
	c.commit("main goes on")
	c.git("switch", "-q", "--orphan", "alone")
	c.commit("alone")
	r, err := refs.Open(t.Context(), c.dir)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) refs.Commit {
		commit, err := r.Commit(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	base, err := r.Base(t.Context(), of("main"), of("change"))
	if err != nil || base.Revision != "sha1:"+root {
		t.Errorf("base = %v, %v", base, err)
	}
	if _, err := r.Base(t.Context(), of("main"), of("alone")); err == nil || !strings.Contains(err.Error(), "have no commit in common in this clone") {
		t.Errorf("error = %v", err)
	}
}

// TestErrors: what is no repository, no revision, and no file.
func TestErrors(t *testing.T) {
	c := newClone(t)
	c.write("a", "x")
	c.commit("root")
	if _, err := refs.Open(t.Context(), t.TempDir()); !errors.Is(err, refs.ErrNone) {
		t.Errorf("no repository: %v", err)
	}
	r, err := refs.Open(t.Context(), c.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nowhere", "--help", "-x", "", "main:a", strings.Repeat("0", 40)} {
		if _, err := r.Commit(t.Context(), name); !errors.Is(err, refs.ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
	commit, err := r.Commit(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Files(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := tree.ReadFile("b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := tree.ReadDir("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file as a folder: %v", err)
	}
	if _, err := tree.ReadFile("."); err == nil {
		t.Error("a folder is read as a file")
	}
}

// TestNothingOfACloneRuns: a clone may be that of a stranger's change, with settings of its own.
func TestNothingOfACloneRuns(t *testing.T) {
	c := newClone(t)
	c.write("a", "x")
	c.write(".gitattributes", "a filter=evil diff=evil export-ignore\n")
	c.commit("root")
	ran := filepath.Join(t.TempDir(), "ran")
	for _, key := range []string{"core.fsmonitor", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "core.pager", "core.sshCommand"} {
		c.git("config", key, "touch "+ran)
	}
	files, _ := read(t, c.dir, "main")
	if !slices.Contains(slices.Collect(maps.Keys(files)), "a") {
		t.Errorf("what is left out of archives is left out: %v", files)
	}
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a setting of the clone was run: %v", err)
	}
}

// TestEnds: a context that ends ends the reading.
func TestEnds(t *testing.T) {
	c := newClone(t)
	c.commit("root")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := refs.Open(ctx, c.dir); err == nil {
		t.Error("it goes on")
	}
}
