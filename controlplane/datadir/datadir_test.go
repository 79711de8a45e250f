package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
)

func TestOpenHoldsTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = datadir.Open(path)
	if !errors.Is(err, datadir.ErrInUse) {
		t.Fatalf("second open: error = %v, want ErrInUse", err)
	}
	if pid := strconv.Itoa(os.Getpid()); !strings.Contains(err.Error(), "held by process "+pid+": stop that first, or name another folder") {
		t.Errorf("error %q does not name the holder %s", err, pid)
	}
	if err := os.Remove(filepath.Join(path, "lock")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first makes the file anew
		if _, err := datadir.Open(path); !errors.Is(err, datadir.ErrInUse) || !strings.Contains(err.Error(), path+" is held by one whose lock file was removed") {
			t.Fatalf("without the lock file: error = %v, want ErrInUse", err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := datadir.Open(path)
	if err != nil {
		t.Fatalf("open after close: %v", err)
	}
	t.Cleanup(func() { again.Close() })
	if diff := cmp.Diff(filepath.Join(path, "a", "b"), again.Path("a", "b")); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode of the folder = %o, want 700", got)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "file")
	for _, step := range []struct {
		content string
		want    bool
	}{{"one", true}, {"one", false}, {"two", true}} {
		written, err := datadir.WriteFile(path, []byte(step.content))
		if err != nil {
			t.Fatal(err)
		}
		if written != step.want {
			t.Errorf("write %q: written = %v, want %v", step.content, written, step.want)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != step.content {
			t.Errorf("content = %q, want %q", got, step.content)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("folder holds %v, want the file alone", entries)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode of the file = %o, want 600", got)
	}
}
