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
)

// memory is a read-only file system for kustomize: the source's files, and
// nothing else. Paths are absolute.
type memory struct {
	files map[string][]byte
	extra map[string][]byte   // wins over files
	dirs  map[string][]string // names in each directory
}

var _ filesys.FileSystem = (*memory)(nil)

var errReadOnly = errors.New("the file system of a build is read only")

func newMemory(files map[string][]byte) *memory {
	m := &memory{files: files, dirs: map[string][]string{"/": nil}}
	for name := range files {
		m.addDirs("/" + name)
	}
	for dir := range m.dirs {
		slices.Sort(m.dirs[dir])
	}
	return m
}

// addDirs lists a new path in its directory, and that in its own, and so on.
func (m *memory) addDirs(name string) {
	for name != "/" {
		dir := path.Dir(name)
		_, known := m.dirs[dir]
		m.dirs[dir] = append(m.dirs[dir], path.Base(name))
		if known {
			return
		}
		name = dir
	}
}

// with returns the file system with one file replaced or added.
func (m *memory) with(name string, content []byte) *memory {
	return &memory{files: m.files, extra: map[string][]byte{name: content}, dirs: m.dirs}
}

// read returns a file, which is not to be changed.
func (m *memory) read(name string) ([]byte, bool) {
	if content, ok := m.extra[name]; ok {
		return content, true
	}
	content, ok := m.files[strings.TrimPrefix(name, "/")]
	return content, ok
}

func (m *memory) isDir(name string) bool {
	_, ok := m.dirs[path.Clean("/"+name)]
	return ok
}

func (m *memory) isFile(name string) bool {
	_, ok := m.read(path.Clean("/" + name))
	return ok
}

// IsDir reports whether a directory is there.
func (m *memory) IsDir(name string) bool { return m.isDir(name) }

// Exists reports whether a file or directory is there.
func (m *memory) Exists(name string) bool { return m.isDir(name) || m.isFile(name) }

// ReadFile returns a file's content, which is not to be changed.
func (m *memory) ReadFile(name string) ([]byte, error) {
	content, ok := m.read(path.Clean("/" + name))
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(content), nil
}

// ReadDir returns the names in a directory.
func (m *memory) ReadDir(name string) ([]string, error) {
	names, ok := m.dirs[path.Clean("/"+name)]
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(names), nil
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
	var out []string
	for name := range m.files {
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
