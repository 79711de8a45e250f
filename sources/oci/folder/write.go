package folder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// ErrTarget means that nothing can be written where a folder should be.
var ErrTarget = errors.New("unusable folder")

// Unpack returns the files of a layer, and the names of what it leaves out: symbolic links, as Flux does, and whatever Git would take for
// its own, as it does what its hooks and configuration say. Errors: artifact.ErrMalformed, artifact.ErrTooLarge.
func Unpack(layer []byte, limits artifact.Limits) (files artifact.Files, left []string, err error) {
	if !bytes.HasPrefix(layer, []byte{0x1f, 0x8b}) {
		return nil, nil, fmt.Errorf("%w: the layer is no gzipped tar", artifact.ErrMalformed)
	}
	files, left, err = artifact.ExtractWithoutLinks(bytes.NewReader(layer), limits)
	if err != nil {
		return nil, nil, err
	}
	for name := range files {
		if ofGit(name) {
			left = append(left, name)
			delete(files, name)
		}
	}
	slices.Sort(left)
	return files, left, files.CheckTwins()
}

// ofGit reports whether a file is in what some file system takes for the folder .git: cases, characters that do not show, and blanks and
// dots at the end make no difference on all, and some have a short name for it.
func ofGit(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		shown := strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, part)
		shown, _, _ = strings.Cut(shown, ":") // a stream of NTFS
		shown = strings.TrimRight(shown, " .")
		return strings.EqualFold(shown, ".git") || strings.EqualFold(shown, "git~1")
	})
}

// staging begins the names of folders in which files wait until all of them are written.
const staging = ".flotilla-pull-*"

// Write writes files to a folder. One that does not exist is there with all of them, or not at all. In one that exists they replace those
// of their names, each at once, after all of them could be written beside; others stay. A symbolic link that leads out of the folder is not
// followed. Errors: ErrTarget.
func Write(target string, files artifact.Files) error {
	if err := write(filepath.Clean(target), files); err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	return nil
}

func write(target string, files artifact.Files) error {
	beside := target
	_, err := os.ReadDir(target)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case absent:
		beside = filepath.Dir(target)
		if err := os.MkdirAll(beside, 0o755); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	stage, err := os.MkdirTemp(beside, staging)
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := stageFiles(stage, files); err != nil {
		return err
	}
	if !absent {
		return each(stage, target, files)
	}
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	return os.Rename(stage, target)
}

// stageFiles writes files to an empty folder, and has them on the disk when it returns.
func stageFiles(stage string, files artifact.Files) error {
	root, err := os.OpenRoot(stage)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name].Link {
			continue
		}
		if err := stageFile(root, name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

func stageFile(root *os.Root, name string, file artifact.File) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if file.Executable {
		mode = 0o755
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = out.Write(file.Data)
	return errors.Join(err, out.Sync(), out.Close())
}

// each puts files in the place of those of their names in a folder that the stage is in.
func each(stage, target string, files artifact.Files) error {
	root, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name].Link {
			continue
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.Rename(path.Join(filepath.Base(stage), name), name); err != nil {
			return err
		}
	}
	return nil
}
