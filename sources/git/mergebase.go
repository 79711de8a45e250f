package git

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/git/pack"
)

// ErrNoMergeBase means that two commits have no latest commit in common, or that too much lies between them to find it.
var ErrNoMergeBase = errors.New("no commit from which both come was found")

// mostBounds is how often a branch may have taken up the other one.
const mostBounds = 20

// MergeBase returns the hash of the latest commit that is in the history of two. It transfers the commits that the first one does
// not have, without files where the server can leave them out. Errors: as Resolve, and ErrNoMergeBase.
func MergeBase(ctx context.Context, r *Remote, onto, branch Commit) (string, error) {
	if onto.Hash == branch.Hash {
		return onto.Hash, nil
	}
	all, err := bounds(ctx, r, onto, branch)
	if isFar(err) {
		err = ErrNoMergeBase
	}
	if err != nil {
		return "", r.wrap(ctx, "find a merge base", err)
	}
	// Of several, the branch has taken up the other one in between: the latest has all others in its history.
	for _, one := range all {
		latest := true
		for _, other := range all {
			if other != one && latest {
				relation, err := Compare(ctx, r, other, Commit{Hash: one})
				if err != nil {
					return "", err
				}
				latest = relation == lineage.Ahead
			}
		}
		if latest {
			return one, nil
		}
	}
	return "", r.wrap(ctx, "find a merge base", ErrNoMergeBase)
}

// bounds returns the commits of one history at which another one left it, sorted.
func bounds(ctx context.Context, r *Remote, onto, branch Commit) (out []string, err error) {
	err = between(ctx, r, onto.Hash, branch, func(p *pack.Pack, _, now plumbing.Hash, depth int) error {
		bounds, err := p.Bounds(now, depth)
		out = texts(bounds)
		return err
	})
	if err == nil && len(out) > mostBounds {
		err = fmt.Errorf("it has taken up the other one more than %d times: %w", mostBounds, ErrNoMergeBase)
	}
	slices.Sort(out)
	return out, err
}
