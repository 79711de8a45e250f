package build

import (
	"crypto/sha256"
	"path"
	"slices"
	"strings"
	"sync"
)

// Tree is the files of a source, made ready to be built from any number of times, also at the same time.
type Tree struct {
	files map[string][]byte
	dirs  map[string][]string // names in each directory, by its absolute path
}

// NewTree returns a Tree of contents by slash-separated path from the root. They must not be changed any
// more.
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

// Folders returns the names of the folders in a folder, which is named by its path from the root, such as "/apps"; sorted.
func (t *Tree) Folders(dir string) []string {
	var out []string
	for _, name := range t.dirs[dir] {
		if _, is := t.dirs[path.Join(dir, name)]; is {
			out = append(out, name)
		}
	}
	return out
}

// addDirs lists a new path in its directory, and that in its own, and so on.
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

// Reads are what a build looked at: from another Tree in which all of it is the same, the same Spec builds
// the same objects. Nil is a build of which that is not known.
type Reads struct {
	mu   sync.Mutex
	seen map[query]string
}

// query is a question to a Tree.
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

// Same reports whether a Tree gives the same answers.
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

// note keeps the answer of a Tree.
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

// answer returns a text that differs where what is asked for does.
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
