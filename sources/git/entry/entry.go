// Package entry describes the files and directories of a commit as package fs does.
//
// In go entries of trees, with what only the reader of the tree knows; out come their names, modes and sizes, and open files. It reads
// no object.
package entry

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Info describes an entry; it looks up the size only when Size is called.
type Info struct {
	// Base is the entry's name.
	Base  string
	Entry object.TreeEntry
	// Committed is when the commit was made.
	Committed time.Time
	// Length returns the size of a file, in bytes.
	Length func() int64
}

var _ fs.FileInfo = Info{}

// Name returns the entry's base name.
func (i Info) Name() string { return i.Base }

// Size returns a file's size in bytes; 0 for anything else.
func (i Info) Size() int64 {
	if !IsFile(i.Entry.Mode) {
		return 0
	}
	return i.Length()
}

// Mode returns the type and permissions of the entry; submodules are irregular.
func (i Info) Mode() fs.FileMode {
	switch i.Entry.Mode {
	case filemode.Dir:
		return fs.ModeDir | 0o755
	case filemode.Executable:
		return 0o755
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Regular, filemode.Deprecated:
		return 0o644
	default:
		return fs.ModeIrregular
	}
}

// ModTime returns when the commit was made.
func (i Info) ModTime() time.Time { return i.Committed }

// IsDir reports whether the entry is a directory.
func (i Info) IsDir() bool { return i.Entry.Mode == filemode.Dir }

// IsFile reports whether a mode is that of a file with content.
func IsFile(m filemode.FileMode) bool {
	return m == filemode.Regular || m == filemode.Executable || m == filemode.Deprecated
}

// SubmoduleCommit is the commit of a submodule, in lower-case hex.
type SubmoduleCommit string

// Sys returns the SubmoduleCommit of a submodule, and nil of anything else.
func (i Info) Sys() any {
	if i.Entry.Mode == filemode.Submodule {
		return SubmoduleCommit(i.Entry.Hash.String())
	}
	return nil
}

// Open returns an open file with a content.
func (i Info) Open(content []byte) fs.File { return &file{bytes.NewReader(content), i} }

// OpenDir returns an open directory with entries.
func (i Info) OpenDir(entries []fs.DirEntry) fs.ReadDirFile { return &dir{i, entries} }

type file struct {
	*bytes.Reader
	info Info
}

// Stat describes the file.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close does nothing.
func (f *file) Close() error { return nil }

type dir struct {
	info    Info
	entries []fs.DirEntry
}

// Stat describes the directory.
func (d *dir) Stat() (fs.FileInfo, error) { return d.info, nil }

// Read fails: a directory has no content.
func (d *dir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Base, Err: errors.New("is a directory")}
}

// Close does nothing.
func (d *dir) Close() error { return nil }

// ReadDir returns the next n entries, or all with n <= 0.
func (d *dir) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case n <= 0:
		n = len(d.entries)
	case len(d.entries) == 0:
		return nil, io.EOF
	default:
		n = min(n, len(d.entries))
	}
	out := d.entries[:n]
	d.entries = d.entries[n:]
	return out, nil
}
