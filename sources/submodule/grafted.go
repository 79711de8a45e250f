package submodule

import (
	"io/fs"
	"path"
	"strings"
	"time"
)

// grafted is a tree in which others stand.
type grafted struct {
	base fs.FS
	at   map[string]fs.FS // by path
}

var (
	_ fs.ReadDirFS  = (*grafted)(nil)
	_ fs.ReadFileFS = (*grafted)(nil)
	_ fs.StatFS     = (*grafted)(nil)
)

// find returns the tree that has a name, and the name in that tree.
func (g *grafted) find(name string) (in fs.FS, at string) {
	for dir := name; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if in, is := g.at[dir]; is {
			if dir == name {
				return in, "."
			}
			return in, strings.TrimPrefix(name, dir+"/")
		}
	}
	return g.base, name
}

// Open opens a file or a directory. What is listed by an open directory leaves
// the submodules out; ReadDir does not.
func (g *grafted) Open(name string) (fs.File, error) {
	in, at := g.find(name)
	return in.Open(at)
}

// Stat describes a file or a directory.
func (g *grafted) Stat(name string) (fs.FileInfo, error) {
	in, at := g.find(name)
	return fs.Stat(in, at)
}

// ReadFile returns a file's content.
func (g *grafted) ReadFile(name string) ([]byte, error) {
	in, at := g.find(name)
	return fs.ReadFile(in, at)
}

// ReadDir returns a directory's entries, sorted by name.
func (g *grafted) ReadDir(name string) ([]fs.DirEntry, error) {
	in, at := g.find(name)
	entries, err := fs.ReadDir(in, at)
	if err != nil || at != name { // of a submodule
		return entries, err
	}
	for i, entry := range entries {
		if _, is := g.at[path.Join(name, entry.Name())]; is {
			entries[i] = fs.FileInfoToDirEntry(root{entry.Name()})
		}
	}
	return entries, nil
}

// root describes the directory of a submodule.
type root struct{ name string }

// Name returns the base name.
func (r root) Name() string { return r.name }

// Size returns 0.
func (root) Size() int64 { return 0 }

// Mode returns that of a directory.
func (root) Mode() fs.FileMode { return fs.ModeDir | 0o755 }

// ModTime returns no time.
func (root) ModTime() time.Time { return time.Time{} }

// IsDir returns true.
func (root) IsDir() bool { return true }

// Sys returns nil.
func (root) Sys() any { return nil }
