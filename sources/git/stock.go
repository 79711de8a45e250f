package git

import (
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-io/flotilla/sources/git/objects"
	"github.com/flotilla-io/flotilla/sources/git/pack"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// stock has what is kept of a repository's objects during one fetch. Nothing of it is
// trusted: it is read as what a server sends, and a tree counts only if all that is
// wanted of it is there, by its hashes.
type stock struct {
	remote *Remote
	store  *objects.Store // nil for none
	key    objects.Key
	kept   *objects.Kept // nil for nothing
	wanted func(file string) bool
	some   bool // of the files are wanted
	// upon means that the transfer was put upon what is kept; usable, that the server
	// can leave out what is.
	upon, usable bool
}

// begin waits for one who fetches the same with the same credentials, as that leaves
// behind what is wanted here, and opens what is kept.
func (s *stock) begin(ctx context.Context, c Commit) (end func(), err error) {
	kept := s.remote.opts.Kept
	if kept == nil || kept.objects == nil {
		return func() {}, nil
	}
	type fetch struct {
		of        identity
		hash, tag string
	}
	id := identityOfAll(s.remote)
	ended, err := kept.fetches.Begin(ctx, fetch{id, c.Hash, c.Tag})
	if err != nil {
		return nil, err
	}
	s.store, s.key = kept.objects, objects.Key(id)
	s.kept = s.store.Open(s.key)
	return func() {
		if s.kept != nil {
			s.kept.Close()
		}
		ended()
	}, nil
}

// tree returns the commit without a request, if all of it is there; otherwise nil. A
// commit that was not looked up by a ref is asked for: the credentials may not count
// any more.
func (s *stock) tree(ctx context.Context, c Commit) *Tree {
	if s.kept == nil || !c.listed || !slices.Contains(s.kept.Commits, plumbing.NewHash(c.Hash)) {
		return nil
	}
	p, err := pack.Receive(s.kept.Pack(), s.remote.opts.TempDir, s.remote.opts.Limits.pack())
	if err != nil {
		return nil
	}
	t, err := newTree(p, plumbing.NewHash(c.Hash), plumbing.NewHash(c.Tag))
	if err != nil {
		p.Close()
		return nil
	}
	if missing, err := s.lacks(ctx, c, t); err != nil || missing > 0 {
		p.Close()
		return nil
	}
	return t
}

// lacks returns how many of the wanted files a tree lacks. It returns an error if it
// lacks anything else, or not all that is there can be read: a server may send once more
// what is there, such as a file that is as it was some commits ago.
func (s *stock) lacks(ctx context.Context, c Commit, t *Tree) (int, error) {
	if t.pack.Repeats() {
		return 0, ErrMalformed
	}
	missing, err := t.missing(ctx, s.wanted, s.remote.opts.Limits.Objects)
	if err == nil && c.Tag != "" {
		_, err = t.SignedTag()
	}
	return len(missing), err
}

// mostMissing is how many files that are not there are asked for one by one.
const mostMissing = 10_000

// changes requests what a commit has that is not there. Whatever is not as it should
// be is no fault, but left to the next way.
func (s *stock) changes(ctx context.Context, conv *conversation, c Commit) (*Tree, error) {
	filter := conv.greeting.Filter()
	if !conv.greeting.V2 || !conv.greeting.Shallow() || s.kept.Some && !filter {
		return nil, errNotThisWay
	}
	want := wire.Wanted{Objects: []plumbing.Hash{plumbing.NewHash(c.Hash)}, Shallow: true, NoFiles: filter && (s.kept.Some || s.some), There: s.kept.Commits}
	conv.upon = s.kept.Pack()
	t, err := conv.tree(ctx, c, plumbing.NewHash(c.Tag), want)
	conv.upon = nil
	if err == nil {
		err = s.complete(ctx, conv, c, t)
	}
	switch {
	case errors.Is(err, ErrMalformed), errors.Is(err, ErrTooLarge), errors.Is(err, ErrRefNotFound):
		return nil, errNotThisWay
	case err != nil:
		return nil, err
	}
	s.upon = true
	return t, nil
}

// complete transfers the wanted files that a tree lacks. With an error it closes the
// tree.
func (s *stock) complete(ctx context.Context, conv *conversation, c Commit, t *Tree) error {
	missing, err := s.lacks(ctx, c, t)
	if err == nil && missing > 0 {
		if missing > mostMissing || !conv.greeting.Filter() {
			err = ErrMalformed
		} else if err = conv.addFiles(ctx, t, s.wanted); err == nil {
			missing, err = s.lacks(ctx, c, t)
		}
		if err == nil && missing > 0 {
			err = ErrMalformed
		}
	}
	if err != nil {
		_ = t.Close()
	}
	return err
}

// keep keeps what was transferred of a commit, with what it was put upon.
func (s *stock) keep(ctx context.Context, c Commit, t *Tree) {
	if s.store == nil || !s.usable {
		return
	}
	some := s.some
	if some {
		left, err := t.missing(ctx, anything, s.remote.opts.Limits.Objects)
		some = err != nil || len(left) > 0
	}
	stream, err := t.pack.Stream()
	if err != nil {
		return
	}
	about := objects.About{Whole: t.pack.Length()}
	if s.upon {
		about = s.kept.About
	}
	s.store.Keep(s.key, about.With(plumbing.NewHash(c.Hash), some), stream, t.pack.Length())
}
