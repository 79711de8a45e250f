package git

import (
	"context"
	"errors"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/git/pack"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

const (
	// mostBetween is how many generations of commits are looked at, and fewBetween
	// where the server sends their files as well.
	mostBetween, fewBetween = 1000, 50
	// mostHistory is how large the transfer may be, in bytes.
	mostHistory = 16 << 20
)

// Compare returns how a commit stands to an earlier one, which the remote need not
// have any more. It transfers the commits that the earlier one does not have in
// its history, without files where the server can leave them out. Errors: as
// Resolve; that too much lies between the two is no error, but Unknown.
func Compare(ctx context.Context, r *Remote, before string, now Commit) (lineage.Relation, error) {
	if before == now.Hash {
		return lineage.Ahead, nil
	}
	if r.opts.Kept == nil || r.opts.Since.IsZero() {
		return compare(ctx, r, before, now)
	}
	type question struct {
		of          identity
		before, now string
		timeout     time.Duration
	}
	key := question{identityOfAll(r), before, now.Hash, r.opts.Timeout}
	return r.opts.Kept.compared.Get(ctx, key, r.opts.Since, func(ctx context.Context) (lineage.Relation, error) { return compare(ctx, r, before, now) })
}

func compare(ctx context.Context, r *Remote, before string, now Commit) (out lineage.Relation, err error) {
	err = between(ctx, r, before, now, func(p *pack.Pack, before, now plumbing.Hash, depth int) (err error) {
		if out = lineage.Behind; p.Has(now) { // else the earlier one has it
			out, err = p.Relation(before, now, depth)
		}
		return err
	})
	if isFar(err) {
		return lineage.Unknown, nil
	}
	if err != nil {
		return lineage.Unknown, r.wrap(ctx, "compare "+now.Revision().Short(), err)
	}
	return out, nil
}

// Line returns the hashes of the commits after an earlier one up to now, the oldest first, each the first parent of the next. It is nil
// if the earlier one is not on that line, or too far away; the remote need not have it any more. Errors: as Resolve.
func Line(ctx context.Context, r *Remote, before string, now Commit) (out []string, err error) {
	err = between(ctx, r, before, now, func(p *pack.Pack, before, now plumbing.Hash, depth int) error {
		line, err := p.Line(before, now, depth)
		out = texts(line)
		return err
	})
	if isFar(err) {
		return nil, nil
	}
	return out, r.wrapIf(ctx, "read the history of "+now.Revision().Short(), err)
}

// errVersion is for servers that cannot leave out parts of a history.
var errVersion = errors.New("the server speaks an old version of the protocol")

// between transfers the commits of a history that an earlier one does not have, up to so many generations, and shows them.
func between(ctx context.Context, r *Remote, before string, now Commit, show func(p *pack.Pack, before, now plumbing.Hash, generations int) error) error {
	if err := errors.Join(checkCommit(before), checkCommit(now.Hash)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	from, to := plumbing.NewHash(before), plumbing.NewHash(now.Hash)
	return r.converse(ctx, uploadPack, func(c *conversation) error {
		if !c.greeting.V2 || !c.greeting.Shallow() {
			return errVersion
		}
		want := wire.Wanted{Objects: []plumbing.Hash{to}, Have: from, Depth: fewBetween}
		if c.greeting.Filter() {
			want.Depth, want.NoTrees = mostBetween, true
		}
		c.limits.Pack = min(c.limits.Pack, mostHistory)
		p, err := c.transfer(ctx, want)
		if err != nil {
			return err
		}
		defer p.Close()
		return show(p, from, to, want.Depth)
	})
}

// isFar reports whether it cannot be told what lies between two commits: the server does not have one of them, or cannot leave out
// the rest, or it is too much.
func isFar(err error) bool {
	var refused *wire.Refusal
	return errors.As(err, &refused) || errors.Is(err, ErrTooLarge) || errors.Is(err, pack.ErrCut) || errors.Is(err, errVersion)
}

func texts(of []plumbing.Hash) []string {
	var out []string
	for _, hash := range of {
		out = append(out, hash.String())
	}
	return out
}
