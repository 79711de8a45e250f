package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/flotilla-io/flotilla/sources/git/draft"
	"github.com/flotilla-io/flotilla/sources/git/note"
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
func (r *Remote) ReadNote(ctx context.Context, commit string) (note.Note, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	if err := checkCommit(commit); err != nil {
		return note.Note{}, err
	}
	notes, err := r.notes(ctx)
	if err != nil {
		return note.Note{}, r.wrap(ctx, "read notes", err)
	}
	defer notes.close()
	_, found, err := notes.find(commit)
	if err != nil {
		return note.Note{}, r.wrap(ctx, "read notes", err)
	}
	return found, nil
}

// WriteNote sets one context's line in the note of a commit and keeps all others.
// It reads, changes and pushes the notes; if somebody else moved the ref in the
// meantime it starts over, and after a few attempts returns ErrConflict. It
// reports whether anything was written.
func (r *Remote) WriteNote(ctx context.Context, commit string, line note.Line, by Signature) (bool, error) {
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

func (r *Remote) writeNoteOnce(ctx context.Context, commit string, line note.Line, by Signature) (bool, error) {
	notes, err := r.notes(ctx)
	if err != nil {
		return false, err
	}
	defer notes.close()
	at, before, err := notes.find(commit)
	if err != nil {
		return false, err
	}
	text := before.With(line).String()
	if text == before.String() {
		return false, nil
	}
	w := draft.Upon(notes.pack)
	root, err := w.Put(notes.root, strings.Split(at, "/"), text)
	if err != nil {
		return false, err
	}
	tip, err := w.Commit(root, notes.tip, object.Signature{Name: by.Name, Email: by.Email, When: by.When})
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
func (n *notesTree) find(commit string) (string, note.Note, error) {
	paths := note.Paths(commit)
	if n.pack == nil {
		return paths[0], note.Note{}, nil
	}
	t := &Tree{pack: n.pack, root: n.root, dirs: map[string][]object.TreeEntry{}}
	home := paths[0]
	for _, p := range paths {
		entry, err := t.entry(p)
		if err == nil {
			content, err := n.pack.Blob(entry.Hash)
			return p, note.Parse(content), err
		}
		// A new note goes into the deepest directory for it that exists.
		if dir := path.Dir(p); dir != "." {
			if d, err := t.entry(dir); err == nil && d.Mode == filemode.Dir {
				home = p
			}
		}
	}
	return home, note.Note{}, nil
}

// push moves a ref from one commit to another, or returns ErrConflict if the ref
// has moved since it was read.
func (r *Remote) push(ctx context.Context, ref string, from, to plumbing.Hash, w *draft.Draft) error {
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
		if err := w.Pack(&objects); err != nil {
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
