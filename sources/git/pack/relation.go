package pack

import (
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/flotilla-io/flotilla/policies/lineage"
)

// Relation returns how a commit stands to an earlier one, by what was transferred: the commits that are not in the history of
// the earlier one, up to this many generations. Errors: wire.ErrMalformed.
func (p *Pack) Relation(before, now plumbing.Hash, depth int) (lineage.Relation, error) {
	seen := map[plumbing.Hash]bool{now: true}
	cut := false
	for generation, next := 1, []plumbing.Hash{now}; len(next) > 0; generation++ {
		this := next
		next = nil
		for _, hash := range this {
			parents, here, err := parentsIn(p, hash)
			if err != nil {
				return lineage.Unknown, err
			}
			if !here {
				continue // the earlier one has it as well
			}
			for _, parent := range parents {
				if parent == before {
					return lineage.Ahead, nil
				}
				cut = cut || generation >= depth
				if !seen[parent] {
					seen[parent] = true
					next = append(next, parent)
				}
			}
		}
	}
	if cut {
		return lineage.Unknown, nil
	}
	return lineage.Aside, nil
}

// ErrCut means that a history goes on before what was transferred of it.
var ErrCut = errors.New("the history goes on")

// Bounds returns the commits that were not transferred and from which one comes, where the commits of up to that many
// generations were that another one does not have. It is the commit itself if that was not transferred. Errors: ErrCut,
// wire.ErrMalformed.
func (p *Pack) Bounds(now plumbing.Hash, depth int) ([]plumbing.Hash, error) {
	var out []plumbing.Hash
	seen := map[plumbing.Hash]bool{now: true}
	for generation, next := 1, []plumbing.Hash{now}; len(next) > 0; generation++ {
		this := next
		next = nil
		for _, hash := range this {
			parents, here, err := parentsIn(p, hash)
			switch {
			case err != nil:
				return nil, err
			case !here:
				out = append(out, hash)
				continue
			case generation >= depth && len(parents) > 0:
				return nil, ErrCut
			}
			for _, parent := range parents {
				if !seen[parent] {
					seen[parent] = true
					next = append(next, parent)
				}
			}
		}
	}
	return out, nil
}

// Line returns the commits after an earlier one up to now, the oldest first, each the first parent of the next: what a branch was at,
// one after the other. It is nil where the earlier one is not on that line. Errors: ErrCut where it is longer than depth,
// wire.ErrMalformed.
func (p *Pack) Line(before, now plumbing.Hash, depth int) ([]plumbing.Hash, error) {
	var out []plumbing.Hash
	for at := now; at != before; {
		parents, here, err := parentsIn(p, at)
		switch {
		case err != nil:
			return nil, err
		case !here || len(parents) == 0:
			return nil, nil
		case len(out) >= depth:
			return nil, ErrCut
		}
		out, at = append(out, at), parents[0]
	}
	slices.Reverse(out)
	return out, nil
}

// parentsIn returns those of a commit; false for one that was not transferred. Errors: wire.ErrMalformed.
func parentsIn(p *Pack, of plumbing.Hash) (parents []plumbing.Hash, here bool, err error) {
	encoded, err := p.Object(of)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, false, nil
	}
	var commit object.Commit
	if err != nil || commit.Decode(encoded) != nil {
		return nil, false, errPack
	}
	return commit.ParentHashes, true, nil
}
