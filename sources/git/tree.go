package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/flotilla-io/flotilla/sources/git/entry"
	"github.com/flotilla-io/flotilla/sources/git/pack"
	"github.com/flotilla-io/flotilla/sources/git/signed"
)

// Tree is a commit's files as an fs.FS. Symbolic links and submodules are listed
// with their mode and cannot be opened. It reads from a spool file, which Close
// frees; it must not be used from several goroutines.
type Tree struct {
	// Message is the commit's message.
	Message string
	// Author is the commit's author, as "Name <mail>".
	Author string
	// Committed is the committer's time.
	Committed time.Time

	pack   *pack.Pack
	commit plumbing.Hash
	tag    plumbing.Hash // of the annotated tag by which the commit was found; zero for none
	root   plumbing.Hash
	dirs   map[string][]object.TreeEntry
}

var (
	_ fs.ReadDirFS  = (*Tree)(nil)
	_ fs.ReadFileFS = (*Tree)(nil)
)

func newTree(p *pack.Pack, commit, tag plumbing.Hash) (*Tree, error) {
	encoded, err := p.Object(commit)
	if err != nil {
		return nil, err
	}
	var c object.Commit
	if err := c.Decode(encoded); err != nil {
		return nil, fmt.Errorf("%w: commit %s: %s", ErrMalformed, commit, remoteText(err.Error()))
	}
	return &Tree{
		Message: c.Message, Author: c.Author.String(), Committed: c.Committer.When,
		pack: p, commit: commit, tag: tag, root: c.TreeHash, dirs: map[string][]object.TreeEntry{},
	}, nil
}

// mostTags is how many tags may point at each other before there is a commit.
const mostTags = 4

// SignedCommit returns the commit as it was signed. Errors: ErrMalformed.
func (t *Tree) SignedCommit() (signed.Object, error) {
	raw, err := t.pack.Raw(t.commit, plumbing.CommitObject)
	if err != nil {
		return signed.Object{}, err
	}
	commit, err := signed.Commit(raw)
	if err != nil {
		return signed.Object{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return commit, nil
}

// SignedTag returns the annotated tag by which the commit was found, as it was signed. Errors: ErrNoTag, ErrMalformed.
func (t *Tree) SignedTag() (signed.Object, error) {
	if t.tag.IsZero() {
		return signed.Object{}, ErrNoTag
	}
	outer, err := t.pack.Raw(t.tag, plumbing.TagObject)
	raw := outer
	for depth := 1; err == nil; depth++ {
		target, kind, bad := signed.Target(raw)
		if bad == nil && kind == plumbing.CommitObject && target == t.commit {
			return signed.Tag(outer), nil
		}
		if bad != nil || kind != plumbing.TagObject || depth == mostTags {
			return signed.Object{}, fmt.Errorf("%w: the tag %s does not lead to the commit %s", ErrMalformed, t.tag, t.commit)
		}
		raw, err = t.pack.Raw(target, plumbing.TagObject)
	}
	return signed.Object{}, err
}

// Close frees the spool file.
func (t *Tree) Close() error {
	t.pack.Close()
	return nil
}

// Open opens a file or a directory.
func (t *Tree) Open(name string) (fs.File, error) {
	of, err := t.entry(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	info := t.info(path.Base(name), of)
	if info.IsDir() {
		entries, err := t.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return info.OpenDir(entries), nil
	}
	content, err := t.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return info.Open(content), nil
}

// ReadFile returns a file's content.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	of, err := t.entry(name)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	if !entry.IsFile(of.Mode) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	content, err := t.pack.Blob(of.Hash)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return content, nil
}

// ReadDir returns a directory's entries, sorted by name.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := t.list(name)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	out := make([]fs.DirEntry, 0, len(entries))
	for _, e := range entries {
		out = append(out, fs.FileInfoToDirEntry(t.info(e.Name, e)))
	}
	return out, nil
}

// SubmoduleCommit is what the fs.FileInfo of a submodule has as its Sys.
type SubmoduleCommit = entry.SubmoduleCommit

func (t *Tree) info(name string, of object.TreeEntry) entry.Info {
	return entry.Info{Base: name, Entry: of, Committed: t.Committed, Length: func() int64 {
		encoded, err := t.pack.Object(of.Hash)
		if err != nil {
			return 0
		}
		return encoded.Size()
	}}
}

// entry finds a name by walking down from the root.
func (t *Tree) entry(name string) (object.TreeEntry, error) {
	if !fs.ValidPath(name) {
		return object.TreeEntry{}, fs.ErrInvalid
	}
	if name == "." {
		return object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: t.root}, nil
	}
	siblings, err := t.list(path.Dir(name))
	if err != nil {
		return object.TreeEntry{}, err
	}
	base := path.Base(name)
	i, found := slices.BinarySearchFunc(siblings, base, func(e object.TreeEntry, n string) int { return strings.Compare(e.Name, n) })
	if !found {
		return object.TreeEntry{}, fs.ErrNotExist
	}
	return siblings[i], nil
}

// list returns a directory's entries, sorted by name, and caches them.
func (t *Tree) list(dir string) ([]object.TreeEntry, error) {
	if entries, ok := t.dirs[dir]; ok {
		return entries, nil
	}
	self, err := t.entry(dir)
	if err != nil {
		return nil, err
	}
	if self.Mode != filemode.Dir {
		return nil, errors.New("not a directory")
	}
	entries, err := t.pack.Tree(self.Hash)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int { return strings.Compare(a.Name, b.Name) })
	t.dirs[dir] = entries
	return entries, nil
}

// missing returns the wanted files, links among them, that were not transferred.
// It looks at most entries.
func (t *Tree) missing(ctx context.Context, wanted func(file string) bool, most int) ([]plumbing.Hash, error) {
	seen := map[plumbing.Hash]bool{}
	var out []plumbing.Hash
	for dirs := []string{"."}; len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		entries, err := t.list(dir)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if most -= len(entries); most < 0 {
			return nil, fmt.Errorf("the commit has too many files to look for some: %w", ErrTooLarge)
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name)
			switch {
			case e.Mode == filemode.Dir:
				dirs = append(dirs, name)
			case e.Mode == filemode.Submodule, !wanted(name), seen[e.Hash], t.pack.Has(e.Hash):
			default:
				seen[e.Hash] = true
				out = append(out, e.Hash)
			}
		}
	}
	return out, nil
}
