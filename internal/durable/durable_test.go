package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// platter is what a disk has left when the power is cut: of files and folders what
// they had at their last sync.
type platter struct {
	t        *testing.T
	contents map[uint64]string        // of files, whatever they are called
	names    map[string][]fs.FileInfo // in folders
	synced   int
	fails    int // which sync fails; 0 is none
}

func newPlatter(t *testing.T) *platter {
	return &platter{t: t, contents: map[uint64]string{}, names: map[string][]fs.FileInfo{}}
}

func (p *platter) disk() disk { return disk{sync: p.sync} }

func (p *platter) sync(file *os.File) error {
	p.t.Helper()
	if p.synced++; p.synced == p.fails {
		return errors.New("the disk is gone")
	}
	is, err := file.Stat()
	if err != nil {
		p.t.Fatal(err)
	}
	if is.IsDir() {
		p.names[file.Name()] = namesIn(p.t, file.Name())
		return nil
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		p.t.Fatal(err)
	}
	p.contents[p.inode(is)] = string(content)
	return nil
}

func (p *platter) inode(is fs.FileInfo) uint64 {
	p.t.Helper()
	stat, ok := is.Sys().(*syscall.Stat_t)
	if !ok {
		p.t.Fatalf("%T says nothing of files", is.Sys())
	}
	return stat.Ino
}

// after is what the files of a folder hold after a cut of the power.
func (p *platter) after(dir string) map[string]string {
	out := map[string]string{}
	for _, is := range p.names[dir] {
		out[is.Name()] = p.contents[p.inode(is)]
	}
	return out
}

func namesIn(t *testing.T, dir string) []fs.FileInfo {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []fs.FileInfo
	for _, entry := range entries {
		is, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, is)
	}
	return out
}

func TestWhatIsWrittenStays(t *testing.T) {
	dir, p := t.TempDir(), newPlatter(t)
	for _, content := range []string{"one", "two", ""} {
		if err := p.disk().write(filepath.Join(dir, "ca.key"), []byte(content)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"ca.key": content}, p.after(dir)); diff != "" {
			t.Errorf("after a cut of the power (-want +got):\n%s", diff)
		}
	}
	if is := namesIn(t, dir); len(is) != 1 || is[0].Mode() != 0o600 {
		t.Errorf("the folder holds %v, want one file of mode 0600", is)
	}
}

// TestADiskThatFails: a fault is told wherever it comes; until then what was there
// stays, and nothing is left beside it.
func TestADiskThatFails(t *testing.T) {
	for name, fails := range map[string]int{"the file's content": 1, "the file's name": 2} {
		t.Run(name, func(t *testing.T) {
			dir, p := t.TempDir(), newPlatter(t)
			if err := p.disk().write(filepath.Join(dir, "ca.key"), []byte("one")); err != nil {
				t.Fatal(err)
			}
			p.fails = p.synced + fails
			if err := p.disk().write(filepath.Join(dir, "ca.key"), []byte("two")); err == nil {
				t.Error("no fault is told")
			}
			if diff := cmp.Diff(map[string]string{"ca.key": "one"}, p.after(dir)); diff != "" {
				t.Errorf("after a cut of the power (-want +got):\n%s", diff)
			}
			if is := namesIn(t, dir); len(is) != 1 {
				t.Errorf("the folder holds %v, want one file", is)
			}
		})
	}
}

// TestAFileSystemThatCannot: some make nothing last of folders, and say so.
func TestAFileSystemThatCannot(t *testing.T) {
	for _, err := range []error{syscall.EINVAL, syscall.ENOTSUP} {
		cannot := disk{sync: func(*os.File) error { return &fs.PathError{Op: "sync", Path: "x", Err: err} }}
		if got := cannot.names(t.TempDir()); got != nil {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestFoldersThatAreMade(t *testing.T) {
	dir, p := t.TempDir(), newPlatter(t)
	for range 2 { // the second time all are there
		if err := p.disk().mkdir(filepath.Join(dir, "a", "b", "c")); err != nil {
			t.Fatal(err)
		}
	}
	for above, name := range map[string]string{"": "a", "a": "b", "a/b": "c"} {
		is := p.names[filepath.Join(dir, above)]
		if len(is) != 1 || is[0].Name() != name || is[0].Mode() != fs.ModeDir|0o700 {
			t.Errorf("%q holds %v after a cut of the power, want %s", above, is, name)
		}
	}
	if p.synced != 3 {
		t.Errorf("%d syncs, want one for each folder", p.synced)
	}
	file := filepath.Join(dir, "file")
	if err := WriteFile(file, nil); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file, filepath.Join(file, "below")} {
		if err := MkdirAll(bad); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
