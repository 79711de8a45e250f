package folder

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// TestAFileThatBecameALink since it was looked at leads nowhere else, unless links are to be followed.
func TestAFileThatBecameALink(t *testing.T) {
	root, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	file := filepath.Join(root, "a", "x.yaml")
	if err := errors.Join(os.WriteFile(elsewhere, []byte("CANARY"), 0o600), os.Mkdir(filepath.Join(root, "a"), 0o700), os.WriteFile(file, []byte("X"), 0o600)); err != nil {
		t.Fatal(err)
	}
	seen, err := os.Lstat(file)
	if err := errors.Join(err, os.Remove(file), os.Symlink(elsewhere, file)); err != nil {
		t.Fatal(err)
	}
	inside, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	for resolve, want := range map[bool]bool{false: false, true: true} {
		p := newPacking(root, Selection{Resolve: resolve})
		p.inside = inside
		err := p.file(file, "a/x.yaml", seen)
		packed, ended := p.end()
		if ended != nil {
			t.Fatal(ended)
		}
		if got := bytes.Contains(packed.Files["a/x.yaml"].Data, []byte("CANARY")); got != want || (err == nil) != want {
			t.Errorf("with links resolved, %t: what is elsewhere is packed: %t, error %v", resolve, got, err)
		}
	}
}

// TestAFolderThatBecameALink since it was looked at has nothing written elsewhere.
func TestAFolderThatBecameALink(t *testing.T) {
	target, elsewhere := t.TempDir(), t.TempDir()
	stage, err := os.MkdirTemp(target, staging)
	if err := errors.Join(err, os.Mkdir(filepath.Join(stage, "app"), 0o700), os.WriteFile(filepath.Join(stage, "app", "web.yaml"), []byte("new"), 0o600), os.Symlink(elsewhere, filepath.Join(target, "app"))); err != nil {
		t.Fatal(err)
	}
	if err := each(stage, target, artifact.Files{"app/web.yaml": {}}); err == nil {
		t.Error("it is written through the link")
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 0 {
		t.Errorf("elsewhere there is %v, %v", entries, err)
	}
}
