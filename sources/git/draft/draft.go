// Package draft makes new objects of a repository, such as those of a note that is to be pushed.
//
// In go the objects that were transferred and what is to change; out comes a pack of what is new. It sends nothing.
package draft

import (
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/flotilla-io/flotilla/sources/git/pack"
)

// Draft has new objects, which are based on transferred ones.
type Draft struct {
	objects *memory.Storage
	from    *pack.Pack
	made    []plumbing.Hash
}

// Upon returns an empty Draft; from has the trees that are changed, and may be nil where there are none.
func Upon(from *pack.Pack) *Draft { return &Draft{objects: memory.NewStorage(), from: from} }

// Put writes a copy of a tree in which the file at a path has the given text, and
// returns its hash. A zero tree is empty.
func (d *Draft) Put(tree plumbing.Hash, at []string, text string) (plumbing.Hash, error) {
	var entries []object.TreeEntry
	var err error
	if !tree.IsZero() {
		if entries, err = d.from.Tree(tree); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	entry := object.TreeEntry{Name: at[0], Mode: filemode.Regular}
	i := slices.IndexFunc(entries, func(e object.TreeEntry) bool { return e.Name == at[0] })
	if len(at) > 1 {
		var child plumbing.Hash
		if i >= 0 {
			child = entries[i].Hash
		}
		entry.Mode = filemode.Dir
		entry.Hash, err = d.Put(child, at[1:], text)
	} else {
		entry.Hash, err = d.add(plumbing.BlobObject, []byte(text))
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if i >= 0 {
		entries[i] = entry
	} else {
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return d.encode(&object.Tree{Entries: entries})
}

// sortName returns what Git orders a tree's entries by.
func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

// Commit writes a commit of a tree, and returns its hash. A zero parent is none.
func (d *Draft) Commit(root, parent plumbing.Hash, who object.Signature) (plumbing.Hash, error) {
	c := &object.Commit{Author: who, Committer: who, Message: "Notes added by flotilla\n", TreeHash: root}
	if !parent.IsZero() {
		c.ParentHashes = []plumbing.Hash{parent}
	}
	return d.encode(c)
}

func (d *Draft) encode(o interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	encoded := d.objects.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return d.store(encoded)
}

func (d *Draft) add(kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	encoded := d.objects.NewEncodedObject()
	encoded.SetType(kind)
	out, err := encoded.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := out.Write(content); err != nil {
		return plumbing.ZeroHash, err
	}
	return d.store(encoded)
}

func (d *Draft) store(encoded plumbing.EncodedObject) (plumbing.Hash, error) {
	hash, err := d.objects.SetEncodedObject(encoded)
	if err == nil && !slices.Contains(d.made, hash) {
		d.made = append(d.made, hash)
	}
	return hash, err
}

// Pack writes all that was made.
func (d *Draft) Pack(to io.Writer) error {
	_, err := packfile.NewEncoder(to, d.objects, false).Encode(d.made, 0)
	return err
}
