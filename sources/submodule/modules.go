package submodule

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/config"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// ErrUnusable means that the submodules of a commit cannot be had as the commit
// asks for them, and that only another commit changes that.
var ErrUnusable = errors.New("unusable submodule")

// File is where a commit says where its submodules come from.
const File = ".gitmodules"

// mostModules is how large a .gitmodules may be, in bytes.
const mostModules = 64 << 10

// parse returns the URLs that a .gitmodules gives, by the path of the submodule.
// Errors: ErrUnusable.
func parse(text []byte) (map[string]string, error) {
	if len(text) > mostModules {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrUnusable, File, mostModules)
	}
	read := config.NewModules()
	if err := read.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("%w: %s is not in the format of Git's configuration", ErrUnusable, File)
	}
	out := map[string]string{}
	for _, module := range read.Submodules {
		at := path.Clean(strings.TrimSuffix(module.Path, "/"))
		if module.Path == "" || !fs.ValidPath(at) || at == "." {
			continue // no submodule can be there
		}
		if was, twice := out[at]; twice && was != module.URL {
			return nil, fmt.Errorf("%w: %s gives two URLs for %s", ErrUnusable, File, line(at))
		}
		out[at] = module.URL
	}
	return out, nil
}

// longest is how much of a text of the repository a message repeats, in runes.
const longest = 200

// line returns foreign text as one bounded line.
func line(text string) string { return excerpt.Runes(excerpt.Line(text), longest) }
