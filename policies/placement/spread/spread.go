package spread

import (
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// Input is what a selection is made from.
type Input struct {
	// Candidates, most preferred first.
	Candidates []framework.Candidate
	// Placement with the constraints.
	Placement *policyv1alpha1.Placement
	// Amount that must find capacity: replicas, or sets of components. Zero for
	// resources that need none.
	Amount int64
	// Unit of the amount, for messages: "replicas".
	Unit string
	// Fresh forgets where the resource runs.
	Fresh bool
}

// Select returns the candidates that satisfy the constraints. Without any, and
// for division by fixed weights, these are all. A maximum of zero means no
// maximum.
//
// By clusters alone the most preferred are taken, and exchanged for roomier
// ones where they lack capacity. By anything else groups are chosen first: those
// that run the resource already as long as the constraints let them, and
// otherwise the ones with the most capacity and preference.
func Select(in Input) ([]framework.Candidate, error) {
	if !counts(in.Placement) {
		return in.Candidates, nil
	}
	r, err := rulesOf(in.Placement.SpreadConstraints)
	if err != nil {
		return nil, err
	}
	if len(r.dimensions) == 0 {
		return selectClusters(in, r.clusters)
	}
	return selectGroups(in, r)
}

// counts reports whether spread constraints have any influence on the placement.
func counts(p *policyv1alpha1.Placement) bool {
	return len(p.SpreadConstraints) > 0 && !replicas.Static(p.ReplicaScheduling)
}

// divides reports whether the chosen clusters must have capacity for all together.
func (in *Input) divides() bool {
	return in.Amount > 0 && !replicas.Duplicates(in.Placement.ReplicaScheduling)
}

// selectClusters takes the first candidates, as many as are allowed; where
// they lack capacity it exchanges the least preferred for roomier ones.
func selectClusters(in Input, want bounds) ([]framework.Candidate, error) {
	if len(in.Candidates) < want.least {
		return nil, tooFewClusters(len(in.Candidates), want.least)
	}
	n := min(len(in.Candidates), want.most)
	chosen, rest := in.Candidates[:n:n], in.Candidates[n:]
	if !in.divides() {
		return chosen, nil
	}
	if chosen = exchange(chosen, rest, in.Amount); capacity(chosen) < in.Amount {
		return nil, noCapacity(in, chosen)
	}
	return chosen, nil
}

func exchange(chosen, rest []framework.Candidate, need int64) []framework.Candidate {
	sum := capacity(chosen)
	if sum >= need || len(rest) == 0 {
		return chosen
	}
	chosen, rest = slices.Clone(chosen), slices.Clone(rest)
	for i := len(chosen) - 1; i >= 0 && sum < need; i-- {
		best := 0
		for j := range rest {
			if rest[j].Available() > rest[best].Available() {
				best = j
			}
		}
		if rest[best].Available() > chosen[i].Available() {
			sum += rest[best].Available() - chosen[i].Available()
			chosen[i], rest[best] = rest[best], chosen[i]
		}
	}
	return chosen
}

func capacity(cs []framework.Candidate) int64 {
	var sum int64
	for i := range cs {
		sum += cs[i].Available()
	}
	return sum
}

// selectGroups is for constraints by other things than clusters.
func selectGroups(in Input, r rules) ([]framework.Candidate, error) {
	if err := r.possible(in.Candidates); err != nil {
		return nil, err
	}
	all := group(in, r)
	if !in.Fresh {
		if chosen, ok := all.stay(); ok {
			return chosen, nil
		}
	}
	chosen, ok := all.choose()
	if !ok {
		return nil, r.impossible(len(in.Candidates))
	}
	return chosen, nil
}
