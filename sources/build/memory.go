package build

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/flotilla-io/flotilla/sources/build/sealed"
)

// memory is a read-only file system for kustomize with only the source's files.
// Paths are absolute.
type memory struct {
	*Tree
	extra  map[string][]byte // goes before files
	reads  *Reads            // records what is read; nil for no record
	sealed *sealed.Files     // those that are encrypted
}

var _ filesys.FileSystem = (*memory)(nil)

var errReadOnly = errors.New("the file system of a build is read only")

// with returns the file system with one file replaced or added.
func (m *memory) with(name string, content []byte) *memory {
	return &memory{Tree: m.Tree, extra: map[string][]byte{name: content}, reads: m.reads, sealed: m.sealed}
}

// read returns a file's content, which must not be changed; of an encrypted one
// what it holds, if it can be opened.
func (m *memory) read(name string) ([]byte, bool) {
	if own, ok := m.extra[name]; ok {
		return own, true
	}
	m.reads.note(m.Tree, contents, name)
	data, ok := m.files[strings.TrimPrefix(name, "/")]
	return m.sealed.Content(strings.TrimPrefix(name, "/"), data), ok
}

// list returns the names in a directory, which must not be changed; false if it
// does not exist.
func (m *memory) list(name string) ([]string, bool) {
	m.reads.note(m.Tree, names, name)
	found, ok := m.dirs[name]
	return found, ok
}

func (m *memory) isDir(name string) bool {
	name = path.Clean("/" + name)
	m.reads.note(m.Tree, isFolder, name)
	_, ok := m.dirs[name]
	return ok
}

func (m *memory) isFile(name string) bool {
	name = path.Clean("/" + name)
	if _, ok := m.extra[name]; ok {
		return true
	}
	m.reads.note(m.Tree, isFile, name)
	_, ok := m.files[strings.TrimPrefix(name, "/")]
	return ok
}

// IsDir reports whether a directory exists.
func (m *memory) IsDir(name string) bool { return m.isDir(name) }

// Exists reports whether a file or directory exists.
func (m *memory) Exists(name string) bool { return m.isDir(name) || m.isFile(name) }

// ReadFile returns a copy of a file's content.
func (m *memory) ReadFile(name string) ([]byte, error) {
	content, ok := m.read(path.Clean("/" + name))
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(content), nil
}

// ReadDir returns the names in a directory.
func (m *memory) ReadDir(name string) ([]string, error) {
	found, ok := m.list(path.Clean("/" + name))
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(found), nil
}

// CleanedAbs splits a path into its directory and its file.
func (m *memory) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	clean := path.Clean("/" + name)
	switch {
	case m.isDir(clean):
		return filesys.ConfirmedDir(clean), "", nil
	case m.isFile(clean):
		return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
	default:
		return "", "", fmt.Errorf("%s is not in the source", clean)
	}
}

// Glob returns the files that match a pattern.
func (m *memory) Glob(pattern string) ([]string, error) {
	m.reads.note(m.Tree, matching, pattern)
	return m.glob(pattern)
}

func (t *Tree) glob(pattern string) ([]string, error) {
	var out []string
	for name := range t.files {
		matched, err := path.Match(path.Clean("/"+pattern), "/"+name)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if matched {
			out = append(out, "/"+name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Create fails.
func (m *memory) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Open fails; files are read whole.
func (m *memory) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir fails.
func (m *memory) Mkdir(string) error { return errReadOnly }

// MkdirAll fails.
func (m *memory) MkdirAll(string) error { return errReadOnly }

// RemoveAll fails.
func (m *memory) RemoveAll(string) error { return errReadOnly }

// WriteFile fails.
func (m *memory) WriteFile(string, []byte) error { return errReadOnly }

// Walk fails; kustomize does not need it.
func (m *memory) Walk(string, filepath.WalkFunc) error { return errReadOnly }
