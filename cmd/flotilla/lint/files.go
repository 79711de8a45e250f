package lint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint/overlays"
)

// maxBytes is how many bytes are read from all files together.
const maxBytes = 100 << 20

// A File is a file that was read.
type File struct {
	// Name is the name as it was given, or the path below the given folder.
	Name string
	// Content is all of it.
	Content []byte
	// Folder is the given folder that contains the file; empty for a file that was given by name.
	Folder string
	// Kustomized is set for a file that was found next to a kustomization: it may
	// be a patch, or a base that is patched.
	Kustomized bool
	// Patch is set for a file that a kustomization of its folder uses as a patch: its content
	// changes an object and is none itself.
	Patch bool
}

// Files reads files, folders with their subfolders, and in for "-". In a folder it reads
// *.yaml, *.yml and *.json, but no hidden files, no links, and no kustomizations, which are
// no objects. Every file is read once.
//
// The error is fs.ErrNotExist for a name that does not exist.
func Files(names []string, in io.Reader) ([]File, error) {
	r := reader{left: maxBytes, seen: map[string]bool{}, kustomized: map[string]bool{}, patches: map[string]bool{}}
	for _, name := range names {
		if err := r.add(name, in); err != nil {
			return nil, err
		}
	}
	return r.files, nil
}

// Folders returns the names that are folders.
func Folders(names []string) []string {
	var out []string
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			out = append(out, name)
		}
	}
	return out
}

type reader struct {
	left       int64
	seen       map[string]bool
	kustomized map[string]bool // folders with a kustomization
	patches    map[string]bool // files that a kustomization names as patches
	files      []File
}

func (r *reader) add(name string, in io.Reader) error {
	if name == "-" {
		return r.read(File{Name: "-"}, in)
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &absentError{name}
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.open(File{Name: name})
	}
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != name && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.Type().IsRegular() && overlays.IsKustomization(entry.Name()):
			r.kustomized[filepath.Dir(path)] = true
			return r.patchesOf(path)
		case !entry.Type().IsRegular() || !isManifest(entry.Name()):
			return nil
		}
		return r.open(File{Name: path, Folder: name})
	})
	for i := range r.files {
		f := &r.files[i]
		f.Kustomized = f.Folder != "" && r.kustomized[filepath.Dir(f.Name)]
		f.Patch = f.Folder != "" && r.patches[filepath.Clean(f.Name)]
	}
	return err
}

// patchesOf records which files a kustomization uses as patches. The build reports an invalid one.
func (r *reader) patchesOf(name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var of struct {
		Patches               []struct{ Path string }
		PatchesJSON6902       []struct{ Path string } `json:"patchesJson6902"`
		PatchesStrategicMerge []string
	}
	if yaml.Unmarshal(content, &of) != nil {
		return nil
	}
	named := of.PatchesStrategicMerge
	for _, p := range slices.Concat(of.Patches, of.PatchesJSON6902) {
		named = append(named, p.Path)
	}
	for _, path := range named {
		r.patches[filepath.Join(filepath.Dir(name), path)] = true
	}
	return nil
}

// absentError is the error for a name that does not exist.
type absentError struct{ name string }

func (e *absentError) Error() string {
	return "there is no file or folder " + e.name + ": correct what -f names, or the folder that it is looked for in"
}

func (e *absentError) Unwrap() error { return fs.ErrNotExist }

func isManifest(name string) bool {
	extension := strings.ToLower(filepath.Ext(name))
	return slices.Contains([]string{".yaml", ".yml", ".json"}, extension)
}

func (r *reader) open(f File) error {
	clean := filepath.Clean(f.Name)
	if r.seen[clean] {
		return nil
	}
	r.seen[clean] = true
	file, err := os.Open(f.Name)
	if err != nil {
		return err
	}
	return errors.Join(r.read(f, file), file.Close())
}

func (r *reader) read(f File, in io.Reader) (err error) {
	if f.Content, err = io.ReadAll(io.LimitReader(in, r.left+1)); err != nil {
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	if r.left -= int64(len(f.Content)); r.left < 0 {
		return fmt.Errorf("read %s: the files have more than %d MiB together", f.Name, maxBytes>>20)
	}
	r.files = append(r.files, f)
	return nil
}
