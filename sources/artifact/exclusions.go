package artifact

import (
	"fmt"
	"path"
	"strings"

	"github.com/fluxcd/pkg/sourceignore/gitignore"
)

// Exclusions say what does not belong to an artifact, for sources that ask before they fetch a file.
type Exclusions struct{ matcher gitignore.Matcher }

// NewExclusions returns those of the .sourceignore in the root of a source, which may be empty, and of spec.ignore, as a
// Selection has them. Errors: ErrTooLarge.
func NewExclusions(root []byte, ignore *string) (Exclusions, error) {
	var c collection
	if len(root) > MaxIgnoreFile {
		return Exclusions{}, fmt.Errorf(".sourceignore: %w", ErrTooLarge)
	}
	if err := c.excludeBelow(".", root); err != nil {
		return Exclusions{}, err
	}
	matcher, err := c.rules(ignore)
	return Exclusions{matcher}, err
}

// Has reports whether a file is excluded.
func (e Exclusions) Has(name string) bool { return e.matcher.Match(strings.Split(name, "/"), false) }

// CheckNames returns an error unless all of the names, which are sorted, can be those of files of one artifact. Errors:
// ErrMalformed.
func CheckNames(names []string) error {
	files := make(map[string]bool, len(names))
	for _, name := range names {
		files[name] = true
	}
	for _, name := range names {
		clean, err := entryName(name)
		if err != nil {
			return err
		}
		if clean != name || clean == "." {
			return fmt.Errorf("%w: the name %q is no path to a file", ErrMalformed, name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return fmt.Errorf("%w: %q is a file and a folder", ErrMalformed, dir)
			}
		}
	}
	return twins(names)
}
