package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// PutPacked is Store.PutWithin for an archive whose bytes are kept as they are. The caller has found that Extract reads it.
func PutPacked(ctx context.Context, s *Store, owner string, packed []byte, fits func(size int64) error, inUse ...string) (Stored, error) {
	if err := fits(int64(len(packed))); err != nil {
		return Stored{}, err
	}
	return newest(ctx, s, owner, DigestOf(packed), packed, inUse)
}

// RestorePacked is Store.Restore for an archive whose bytes are kept as they are.
func RestorePacked(ctx context.Context, s *Store, owner, digest string, packed []byte) error {
	return oldest(ctx, s, owner, digest, DigestOf(packed), packed)
}

// DigestOf returns the digest that names an archive in the store.
func DigestOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return algorithm + hex.EncodeToString(sum[:])
}

// ExtractWithoutLinks is Extract, but leaves out symbolic links, as Flux does, instead of refusing them. It returns their names.
func ExtractWithoutLinks(r io.Reader, limits Limits) (files Files, links []string, err error) {
	return extract(r, limits, true)
}

// Select returns those of the files that a Selection takes. Errors: those of Collect.
func (f Files) Select(ctx context.Context, selection Selection, limits Limits) (Files, error) {
	tree, err := newFolder(f)
	if err != nil {
		return nil, err
	}
	return Collect(ctx, tree, selection, limits)
}

// folder is files as a file system.
type folder struct {
	files   Files
	folders map[string][]fs.DirEntry
}

func newFolder(files Files) (folder, error) {
	f := folder{files, map[string][]fs.DirEntry{".": nil}}
	listed := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		above := path.Dir(name)
		for dir := above; dir != "."; dir = path.Dir(dir) {
			if _, isFile := files[dir]; isFile {
				return f, fmt.Errorf("%w: %q is a file and a folder", ErrMalformed, dir)
			}
			if listed[dir] {
				break
			}
			listed[dir] = true
			f.folders[path.Dir(dir)] = append(f.folders[path.Dir(dir)], fs.FileInfoToDirEntry(entry{name: path.Base(dir), mode: fs.ModeDir | 0o755}))
		}
		f.folders[above] = append(f.folders[above], fs.FileInfoToDirEntry(entryOf(name, files[name])))
	}
	for _, entries := range f.folders {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return f, nil
}

func entryOf(name string, file File) entry {
	e := entry{name: path.Base(name), size: int64(len(file.Data)), mode: 0o644}
	if file.Executable {
		e.mode = 0o755
	}
	return e
}

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) {
	if file, found := f.files[name]; found {
		return open{bytes.NewReader(file.Data), entryOf(name, file)}, nil
	}
	if _, found := f.folders[name]; found {
		return open{bytes.NewReader(nil), entry{name: path.Base(name), mode: fs.ModeDir | 0o755}}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS.
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, found := f.folders[name]
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return entries, nil
}

// open is an open file.
type open struct {
	*bytes.Reader
	entry entry
}

func (o open) Stat() (fs.FileInfo, error) { return o.entry, nil }
func (o open) Close() error               { return nil }

// entry describes a file or a folder.
type entry struct {
	name string
	size int64
	mode fs.FileMode
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return e.size }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }
