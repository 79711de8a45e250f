package git

import (
	"context"
	"errors"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-io/flotilla/policies/lineage"
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
	for _, hash := range []string{before, now.Hash} {
		if err := checkCommit(hash); err != nil {
			return lineage.Unknown, r.wrap(ctx, "compare", err)
		}
	}
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

func compare(ctx context.Context, r *Remote, before string, now Commit) (lineage.Relation, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	var out lineage.Relation
	err := r.converse(ctx, uploadPack, func(c *conversation) (err error) {
		out, err = c.compare(ctx, plumbing.NewHash(before), plumbing.NewHash(now.Hash))
		return err
	})
	var refused *wire.Refusal
	if errors.As(err, &refused) || errors.Is(err, ErrTooLarge) {
		return lineage.Unknown, nil
	}
	if err != nil {
		return lineage.Unknown, r.wrap(ctx, "compare "+now.Revision().Short(), err)
	}
	return out, nil
}

func (c *conversation) compare(ctx context.Context, before, now plumbing.Hash) (lineage.Relation, error) {
	if !c.greeting.V2 || !c.greeting.Shallow() {
		return lineage.Unknown, nil
	}
	want := wire.Wanted{Objects: []plumbing.Hash{now}, Have: before, Depth: fewBetween}
	if c.greeting.Filter() {
		want.Depth, want.NoTrees = mostBetween, true
	}
	c.limits.Pack = min(c.limits.Pack, mostHistory)
	p, err := c.transfer(ctx, want)
	if err != nil {
		return lineage.Unknown, err
	}
	defer p.Close()
	if !p.Has(now) { // the earlier one has it
		return lineage.Behind, nil
	}
	return p.Relation(before, now, want.Depth)
}
