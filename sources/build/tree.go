package build

import (
	"crypto/sha256"
	"path"
	"slices"
	"strings"
	"sync"
)

// Tree holds the files of a source, indexed so that they can be built any number
// of times, also concurrently.
type Tree struct {
	files map[string][]byte
	dirs  map[string][]string // names in each directory, by its absolute path
	links map[string]bool     // absolute paths of symbolic links, which are not followed
}

// NewTree returns a Tree of contents by slash-separated path from the root. They
// must not be changed afterwards.
func NewTree(files map[string][]byte) *Tree {
	t := &Tree{files: files, dirs: map[string][]string{"/": nil}}
	for name := range files {
		t.addDirs("/" + name)
	}
	for dir := range t.dirs {
		slices.Sort(t.dirs[dir])
	}
	return t
}

// WithLinks returns the Tree with symbolic links at these paths from the root.
// They are not followed: errors about what is missing name them.
func (t *Tree) WithLinks(names []string) *Tree {
	out := *t
	out.links = make(map[string]bool, len(names))
	for _, name := range names {
		out.links[path.Join("/", name)] = true
	}
	return &out
}

// link returns the symbolic link that a path is, or leads through; empty for none.
func (t *Tree) link(name string) string {
	for at := path.Clean(name); at != "/" && at != "."; at = path.Dir(at) {
		if t.links[at] {
			return at
		}
	}
	return ""
}

// notFollowed is what is said about a symbolic link that is used.
const notFollowed = "is a symbolic link, which is not followed: commit the file itself"

// Folders returns the names of the folders in a folder, which is given by its
// path from the root, such as "/apps"; sorted.
func (t *Tree) Folders(dir string) []string {
	var out []string
	for _, name := range t.dirs[dir] {
		if _, is := t.dirs[path.Join(dir, name)]; is {
			out = append(out, name)
		}
	}
	return out
}

// addDirs adds a path to its directory, and that directory to its own, up to one
// that is known.
func (t *Tree) addDirs(name string) {
	for name != "/" {
		dir := path.Dir(name)
		_, known := t.dirs[dir]
		t.dirs[dir] = append(t.dirs[dir], path.Base(name))
		if known {
			return
		}
		name = dir
	}
}

// Reads records what a build has read. With another Tree in which all of that is
// the same, the same Spec builds the same objects. Nil is for a build of which
// that is not known.
type Reads struct {
	mu   sync.Mutex
	seen map[query]string
}

// query is a lookup in a Tree.
type query struct {
	about question
	name  string // an absolute path, or a pattern
}

type question byte

const (
	isFolder question = iota
	isFile
	names
	contents
	matching
)

// Same reports whether all lookups have the same results in a Tree.
func (r *Reads) Same(t *Tree) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, answer := range r.seen {
		if t.answer(at) != answer {
			return false
		}
	}
	return true
}

// note records the result of a lookup in a Tree.
func (r *Reads) note(t *Tree, about question, name string) {
	if r == nil {
		return
	}
	at := query{about, name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.seen[at]; !known {
		r.seen[at] = t.answer(at)
	}
}

// answer returns a text that differs where the result of a lookup does.
func (t *Tree) answer(at query) string {
	yes := map[bool]string{true: "yes", false: "no"}
	switch at.about {
	case isFolder:
		_, is := t.dirs[at.name]
		return yes[is]
	case isFile:
		_, is := t.files[strings.TrimPrefix(at.name, "/")]
		return yes[is]
	case names:
		return strings.Join(t.dirs[at.name], "/")
	case matching:
		found, err := t.glob(at.name)
		return strings.Join(append(found, yes[err == nil]), "\n")
	default:
		data, is := t.files[strings.TrimPrefix(at.name, "/")]
		sum := sha256.Sum256(data)
		return yes[is] + string(sum[:])
	}
}
