package spread

import (
	"errors"
	"fmt"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// ErrUnsupported means that the constraints name neither clusters nor regions.
var ErrUnsupported = errors.New("just support cluster and region spread constraint")

// Input is what a selection is made from.
type Input struct {
	// Candidates, most preferred first.
	Candidates []framework.Candidate
	// Placement with the constraints.
	Placement *policyv1alpha1.Placement
	// Replicas that must find room; zero for resources without replicas.
	Replicas int32
}

// bounds are the least and the most groups that a constraint wants.
type bounds struct{ least, most int }

const unbounded = int(^uint(0) >> 1)

// Select returns the candidates that satisfy the constraints. Without any, and
// for division by fixed weights, these are all. A maximum of zero means no
// maximum.
func Select(in Input) ([]framework.Candidate, error) {
	strategy := in.Placement.ReplicaScheduling
	if len(in.Placement.SpreadConstraints) == 0 || replicas.Static(strategy) {
		return in.Candidates, nil
	}
	cluster, byCluster := find(in.Placement, policyv1alpha1.SpreadByFieldCluster)
	region, byRegion := find(in.Placement, policyv1alpha1.SpreadByFieldRegion)
	switch {
	case byRegion:
		return selectRegions(in, region, cluster)
	case byCluster:
		return selectClusters(in, cluster)
	default:
		return nil, ErrUnsupported
	}
}

func find(p *policyv1alpha1.Placement, by policyv1alpha1.SpreadFieldValue) (bounds, bool) {
	for _, c := range p.SpreadConstraints {
		if c.SpreadByField != by {
			continue
		}
		b := bounds{least: max(c.MinGroups, 1), most: c.MaxGroups}
		if b.most <= 0 {
			b.most = unbounded
		}
		return b, true
	}
	return bounds{least: 1, most: unbounded}, false
}

// selectClusters takes the first candidates, as many as are allowed; where
// they lack room it exchanges the least preferred for roomier ones.
func selectClusters(in Input, want bounds) ([]framework.Candidate, error) {
	if len(in.Candidates) < want.least {
		return nil, fmt.Errorf("the number of feasible clusters is less than spreadConstraint.MinGroups: %d of %d",
			len(in.Candidates), want.least)
	}
	n := min(len(in.Candidates), want.most)
	chosen, rest := in.Candidates[:n:n], in.Candidates[n:]
	if replicas.Duplicates(in.Placement.ReplicaScheduling) || in.Replicas == 0 || len(rest) == 0 {
		return chosen, nil
	}
	return exchange(chosen, rest, int64(in.Replicas))
}

func exchange(chosen, rest []framework.Candidate, need int64) ([]framework.Candidate, error) {
	chosen = append([]framework.Candidate(nil), chosen...)
	rest = append([]framework.Candidate(nil), rest...)
	sum := room(chosen)
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
	if sum < need {
		return nil, &framework.UnschedulableError{
			Message: fmt.Sprintf("no enough resource when selecting %d clusters: room for %d of %d replicas", len(chosen), sum, need),
		}
	}
	return chosen, nil
}

func room(cs []framework.Candidate) int64 {
	var sum int64
	for i := range cs {
		sum += cs[i].Available()
	}
	return sum
}
