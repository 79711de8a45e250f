package pack

import (
	"errors"

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
			encoded, err := p.Object(hash)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				continue // the earlier one has it as well
			}
			var commit object.Commit
			if err == nil {
				err = commit.Decode(encoded)
			}
			if err != nil {
				return lineage.Unknown, errPack
			}
			for _, parent := range commit.ParentHashes {
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
			encoded, err := p.Object(hash)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				out = append(out, hash)
				continue
			}
			var commit object.Commit
			if err == nil {
				err = commit.Decode(encoded)
			}
			switch {
			case err != nil:
				return nil, errPack
			case generation >= depth && len(commit.ParentHashes) > 0:
				return nil, ErrCut
			}
			for _, parent := range commit.ParentHashes {
				if !seen[parent] {
					seen[parent] = true
					next = append(next, parent)
				}
			}
		}
	}
	return out, nil
}
