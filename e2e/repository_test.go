package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// repository is a bare repository on the fleet's Git server, and a work tree.
type repository struct {
	t    *testing.T
	url  string
	tree string
}

// repository makes an empty repository named after the test.
func (w *world) repository(t *testing.T) *repository {
	t.Helper()
	return w.repositoryNamed(t, fleet.NameOf(t))
}

func (w *world) repositoryNamed(t *testing.T, name string) *repository {
	t.Helper()
	if err := w.Git.Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	r := &repository{t: t, url: w.Git.URL(name), tree: t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("remote", "add", "origin", r.url)
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	out, err := gitserver.Git(r.t.Context(), r.tree, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// write puts one file into the work tree.
func (r *repository) write(path, content string) {
	r.t.Helper()
	full := filepath.Join(r.tree, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// read returns a file of the work tree.
func (r *repository) read(path string) string {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(r.tree, path))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(content)
}

// copy puts a whole file system into a folder of the work tree.
func (r *repository) copy(files fs.FS, folder string) {
	r.t.Helper()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err == nil {
			r.write(filepath.Join(folder, path), string(content))
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// push commits everything and pushes it; the answer is the commit.
func (r *repository) push(message string) string {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", message)
	r.git("push", "--quiet", "origin", "HEAD:main")
	return r.git("rev-parse", "HEAD")
}

// revert takes the last commit back by a new one.
func (r *repository) revert() string {
	r.t.Helper()
	r.git("revert", "--no-edit", "HEAD")
	r.git("push", "--quiet", "origin", "HEAD:main")
	return r.git("rev-parse", "HEAD")
}

// note is what the control plane wrote to a commit.
func (r *repository) note(commit string) string {
	r.t.Helper()
	_, err := gitserver.Git(r.t.Context(), r.tree, "fetch", "--quiet", "origin", "+refs/notes/*:refs/notes/*")
	if err != nil {
		return ""
	}
	out, err := gitserver.Git(r.t.Context(), r.tree, "notes", "--ref=flotilla", "show", commit)
	if err != nil {
		return ""
	}
	return out
}

// testdata is a folder of real applications that lies beside the checkout.
func testdata(t *testing.T, path string) fs.FS {
	t.Helper()
	full := filepath.Join("..", "..", "shared", "testdata", path)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("the real application in %s is not beside this checkout", full)
	}
	return os.DirFS(full)
}
