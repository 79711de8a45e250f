package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/flotilla-io/flotilla/sources/git/pack"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// Signature is the author of a note, and its time.
type Signature struct {
	Name, Email string
	When        time.Time
}

// pushAttempts is how often writing a note is tried while others move the ref.
const pushAttempts = 5

// ReadNote returns the note of a commit; it is empty if there is none.
func (r *Remote) ReadNote(ctx context.Context, commit string) (Note, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	if err := checkCommit(commit); err != nil {
		return Note{}, err
	}
	notes, err := r.notes(ctx)
	if err != nil {
		return Note{}, r.wrap(ctx, "read notes", err)
	}
	defer notes.close()
	_, note, err := notes.find(commit)
	if err != nil {
		return Note{}, r.wrap(ctx, "read notes", err)
	}
	return note, nil
}

// WriteNote sets one context's line in the note of a commit and keeps all others.
// It reads, changes and pushes the notes; if somebody else moved the ref in the
// meantime it starts over, and after a few attempts returns ErrConflict. It
// reports whether anything was written.
func (r *Remote) WriteNote(ctx context.Context, commit string, line NoteLine, by Signature) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	if err := checkCommit(commit); err != nil {
		return false, err
	}
	for range pushAttempts {
		wrote, err := r.writeNoteOnce(ctx, commit, line, by)
		if err == nil || !errors.Is(err, ErrConflict) {
			return wrote, r.wrapIf(ctx, "write note", err)
		}
	}
	return false, r.wrap(ctx, "write note", fmt.Errorf("%s: %w", NotesRef, ErrConflict))
}

func (r *Remote) wrapIf(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	return r.wrap(ctx, what, err)
}

func (r *Remote) writeNoteOnce(ctx context.Context, commit string, line NoteLine, by Signature) (bool, error) {
	notes, err := r.notes(ctx)
	if err != nil {
		return false, err
	}
	defer notes.close()
	at, note, err := notes.find(commit)
	if err != nil {
		return false, err
	}
	text := note.With(line).String()
	if text == note.String() {
		return false, nil
	}
	w := &treeWriter{objects: memory.NewStorage(), from: notes.pack}
	root, err := w.put(notes.root, strings.Split(at, "/"), text)
	if err != nil {
		return false, err
	}
	tip, err := w.commit(root, notes.tip, by)
	if err != nil {
		return false, err
	}
	return true, r.push(ctx, NotesRef, notes.tip, tip, w)
}

// notesTree is the notes' tree on the remote; all fields are zero if there is
// none.
type notesTree struct {
	tip, root plumbing.Hash
	pack      *pack.Pack
}

func (n *notesTree) close() {
	if n.pack != nil {
		n.pack.Close()
	}
}

func (r *Remote) notes(ctx context.Context) (*notesTree, error) {
	out := &notesTree{}
	err := r.converse(ctx, uploadPack, func(c *conversation) error {
		refs, err := c.list(ctx, c.limits.Refs, NotesRef)
		tip, found := refs.At[NotesRef]
		if err != nil || !found {
			return err
		}
		p, err := c.transfer(ctx, wire.Wanted{Objects: []plumbing.Hash{tip}, Shallow: c.greeting.Shallow()})
		if err != nil {
			return err
		}
		t, err := newTree(p, tip, plumbing.ZeroHash)
		if err != nil {
			p.Close()
			return err
		}
		out.tip, out.root, out.pack = tip, t.root, p
		return nil
	})
	return out, refusal(err)
}

// find returns the path of a commit's note and its content, or the path for a new
// one and an empty note.
func (n *notesTree) find(commit string) (string, Note, error) {
	paths := notePaths(commit)
	if n.pack == nil {
		return paths[0], Note{}, nil
	}
	t := &Tree{pack: n.pack, root: n.root, dirs: map[string][]object.TreeEntry{}}
	home := paths[0]
	for _, p := range paths {
		entry, err := t.entry(p)
		if err == nil {
			content, err := n.pack.Blob(entry.Hash)
			return p, ParseNote(content), err
		}
		// A new note goes into the deepest directory for it that exists.
		if dir := path.Dir(p); dir != "." {
			if d, err := t.entry(dir); err == nil && d.Mode == filemode.Dir {
				home = p
			}
		}
	}
	return home, Note{}, nil
}

// treeWriter creates new objects based on the transferred ones.
type treeWriter struct {
	objects *memory.Storage
	from    *pack.Pack
	made    []plumbing.Hash
}

// put writes a copy of a tree in which the file at a path has the given text, and
// returns its hash. A zero tree is empty.
func (w *treeWriter) put(tree plumbing.Hash, at []string, text string) (plumbing.Hash, error) {
	var entries []object.TreeEntry
	var err error
	if !tree.IsZero() {
		if entries, err = w.from.Tree(tree); err != nil {
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
		entry.Hash, err = w.put(child, at[1:], text)
	} else {
		entry.Hash, err = w.add(plumbing.BlobObject, []byte(text))
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
	return w.encode(&object.Tree{Entries: entries})
}

// sortName returns what Git orders a tree's entries by.
func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

func (w *treeWriter) commit(root, parent plumbing.Hash, by Signature) (plumbing.Hash, error) {
	who := object.Signature{Name: by.Name, Email: by.Email, When: by.When}
	c := &object.Commit{Author: who, Committer: who, Message: "Notes added by flotilla\n", TreeHash: root}
	if !parent.IsZero() {
		c.ParentHashes = []plumbing.Hash{parent}
	}
	return w.encode(c)
}

func (w *treeWriter) encode(o interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	encoded := w.objects.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.store(encoded)
}

func (w *treeWriter) add(kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	encoded := w.objects.NewEncodedObject()
	encoded.SetType(kind)
	out, err := encoded.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := out.Write(content); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.store(encoded)
}

func (w *treeWriter) store(encoded plumbing.EncodedObject) (plumbing.Hash, error) {
	hash, err := w.objects.SetEncodedObject(encoded)
	if err == nil && !slices.Contains(w.made, hash) {
		w.made = append(w.made, hash)
	}
	return hash, err
}

// push moves a ref from one commit to another, or returns ErrConflict if the ref
// has moved since it was read.
func (r *Remote) push(ctx context.Context, ref string, from, to plumbing.Hash, w *treeWriter) error {
	return r.converse(ctx, receivePack, func(c *conversation) error {
		if c.greeting.Refs.At[ref] != from {
			return ErrConflict
		}
		req := packp.NewReferenceUpdateRequest()
		req.Commands = []*packp.Command{{Name: plumbing.ReferenceName(ref), Old: from, New: to}}
		if err := req.Capabilities.Set(capability.ReportStatus); err != nil {
			return err
		}
		var objects bytes.Buffer
		if _, err := packfile.NewEncoder(&objects, w.objects, false).Encode(w.made, 0); err != nil {
			return err
		}
		req.Packfile = io.NopCloser(&objects)
		body, err := c.exchange(ctx, req.Encode)
		if err != nil {
			return err
		}
		defer body.Close()
		return readReport(body)
	})
}

// maxReport is how much of a push's report is read, in bytes.
const maxReport = 64 << 10

// conflictWords are parts of the messages with which servers report that a ref
// has moved.
var conflictWords = []string{"fetch first", "non-fast-forward", "failed to update ref", "already exists", "cannot lock", "failed to lock", "stale"}

// errPush means that a server refused a push. Its message is not shown.
var errPush = errors.New("push refused: does a rule of the server protect " + NotesRef + "?")

func readReport(r io.Reader) error {
	report := packp.NewReportStatus()
	if err := report.Decode(io.LimitReader(r, maxReport)); err != nil {
		return fmt.Errorf("%w: it is no report of a push", ErrMalformed)
	}
	err := report.Error()
	if err == nil {
		return nil
	}
	words := err.Error()
	for _, c := range conflictWords {
		if strings.Contains(words, c) {
			return ErrConflict
		}
	}
	return errPush
}
