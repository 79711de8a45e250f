package artifact_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// tinyDisk mounts a file system of its own in memory, and returns where. Who may not mount is told so.
func tinyDisk(t *testing.T, options string) string {
	t.Helper()
	// Not under t.TempDir: its removal must not meet a disk that is still mounted.
	dir, err := os.MkdirTemp("", "flotilla-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a disk of its own cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// TestStoreOnADiskThatTakesNoMore: on a real disk that is full, has no inodes left or is mounted anew for reading alone nothing
// more is stored, what is there stays and can be read, and once the disk takes something again so does the store.
func TestStoreOnADiskThatTakesNoMore(t *testing.T) {
	noise := make([]byte, 64<<10) // which cannot be packed smaller
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(noise); i++ {
		noise[i] = byte(r.Uint32())
	}
	fills := func(t *testing.T, dir string) (again func()) {
		path := filepath.Join(dir, "filler")
		err := os.WriteFile(path, bytes.Repeat(noise, 16), 0o600)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		return func() { _ = os.Remove(path) }
	}
	for name, tc := range map[string]struct {
		options string
		worsens func(t *testing.T, dir string) (again func())
		want    error
	}{
		"it is full": {options: "size=512k", worsens: fills, want: syscall.ENOSPC},
		"it has no inodes left": {options: "size=1m,nr_inodes=32", want: syscall.ENOSPC, worsens: func(t *testing.T, dir string) func() {
			var made []string
			for i := range 64 {
				path := filepath.Join(dir, fmt.Sprint("filler", i))
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					break
				}
				made = append(made, path)
			}
			return func() {
				for _, path := range made {
					_ = os.Remove(path)
				}
			}
		}},
		"it can only be read": {options: "size=512k", want: syscall.EROFS, worsens: func(t *testing.T, dir string) func() {
			if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
				t.Skipf("the disk cannot be mounted for reading alone: %v", err)
			}
			return func() {
				if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=512k"); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tinyDisk(t, tc.options)
			store, err := artifact.NewStore(filepath.Join(dir, "artifacts"), artifact.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			old := artifact.Files{"a": {Data: []byte("1")}}
			first, err := store.Put(t.Context(), "shop", old)
			if err != nil {
				t.Fatal(err)
			}
			reads := func(when string) {
				t.Helper()
				if files, err := store.Open(t.Context(), first.Digest); err != nil || string(files["a"].Data) != "1" || !store.Owns("shop", first.Digest) {
					t.Errorf("%s: %v, %v", when, files, err)
				}
			}
			again := tc.worsens(t, dir)
			next := artifact.Files{"a": {Data: noise}}
			for range 2 { // and no folder fills with what is half done
				if stored, err := store.Put(t.Context(), "shop", next); !errors.Is(err, tc.want) {
					t.Errorf("put: %+v, %v, want %v", stored, err, tc.want)
				}
			}
			reads("while it takes no more")
			if left, err := os.ReadDir(filepath.Join(dir, "artifacts", "tmp")); err != nil || len(left) > 0 {
				t.Errorf("half done is: %v, %v", left, err)
			}
			again()
			second, err := store.Put(t.Context(), "shop", next)
			if err != nil || !store.Owns("shop", second.Digest) {
				t.Errorf("once it takes something again: %+v, %v", second, err)
			}
		})
	}
}
