package artifact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// CheckTwins returns an error if two of the files, or of the folders that they are in, have names that differ only in case or in how
// their letters are encoded. On the disks of many people those are one file, so that what somebody has read there need not be what is
// applied. Errors: ErrMalformed.
func (f Files) CheckTwins() error {
	if err := f.twins(); err != nil {
		return fmt.Errorf("%w: rename one", err)
	}
	return nil
}

func (f Files) twins() error {
	names := make([]string, 0, len(f))
	for name, file := range f {
		if !file.Link {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return twins(names)
}

// twins returns the error of CheckTwins about names, which are sorted, without the next step.
func twins(names []string) error {
	folder := cases.Fold()
	keys := make(map[string]string, len(names)) // what is the same for all twins, by path
	seen := make(map[string]string, len(names)) // and the other way round
	for _, name := range names {
		above := ""
		for end := range ends(name) {
			path := name[:end]
			key, known := keys[path]
			if !known {
				key = above + "/" + plainest(folder, path[strings.LastIndexByte(path, '/')+1:])
				if other, found := seen[key]; found {
					// In ASCII, as they may look the same otherwise.
					return fmt.Errorf("%w: the names %+q and %+q differ only in case, or in how their letters are encoded, and are the same on many disks", ErrMalformed, other, path)
				}
				keys[path], seen[key] = key, path
			}
			above = key
		}
	}
	return nil
}

// ends yields where each folder of a path ends, and then the path.
func ends(name string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for at := range len(name) {
			if name[at] == '/' && !yield(at) {
				return
			}
		}
		yield(len(name))
	}
}

// plainest returns what a name has in common with its twins.
func plainest(folder cases.Caser, name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(name)
	}
	return norm.NFC.String(folder.String(norm.NFD.String(name)))
}
