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
