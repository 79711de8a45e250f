package spread_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/spread"
)

// FuzzRegions compares first placements by region and cluster with the rule as
// it is written for Karmada: score each region; among the combinations of
// regions that are just enough take the one with the highest sum, then the most
// clusters, then the first; of it the shortest part that is enough; then the
// first cluster of each, and the best of the rest.
func FuzzRegions(f *testing.F) {
	for i := range uint64(64) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		in := randomInput(rnd, 1+rnd.IntN(12))
		in.Fresh = true
		region := policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 1 + rnd.IntN(3)}
		region.MaxGroups = region.MinGroups + rnd.IntN(2) // may be more than clusters
		cluster := policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1 + rnd.IntN(4)}
		cluster.MaxGroups = cluster.MinGroups + rnd.IntN(4)
		in.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{region, cluster}
		want := names(written(in, region, cluster))
		got, err := spread.Select(in)
		if want == "" {
			if err == nil {
				t.Errorf("chose %s, want none: %v", names(got), in.Placement.SpreadConstraints)
			}
			return
		}
		if in.Placement.ReplicaScheduling != nil && available(written(in, region, cluster)) < in.Amount {
			return // it would be unschedulable there
		}
		if names(got) != want {
			t.Errorf("chose %s, want %s: %v, %v", names(got), want, err, in.Placement.SpreadConstraints)
		}
	})
}

type regionOf struct {
	name    string
	members []framework.Candidate
	score   int64
}

func written(in spread.Input, region, cluster policyv1alpha1.SpreadConstraint) []framework.Candidate {
	var regions []*regionOf
	for _, c := range in.Candidates {
		i := slices.IndexFunc(regions, func(r *regionOf) bool { return r.name == c.Spec.Region })
		if i < 0 {
			i = len(regions)
			regions = append(regions, &regionOf{name: c.Spec.Region})
		}
		regions[i].members = append(regions[i].members, c)
	}
	for _, r := range regions {
		r.score = writtenScore(in, r.members, region.MinGroups, cluster.MinGroups)
	}
	better := func(a, b *regionOf) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name)) }
	slices.SortFunc(regions, func(a, b *regionOf) int {
		return cmp.Or(cmp.Compare(len(a.members), len(b.members)), better(a, b))
	})
	enough := func(rs []*regionOf) bool {
		n := 0
		for _, r := range rs {
			n += len(r.members)
		}
		return len(rs) >= region.MinGroups && n >= cluster.MinGroups
	}
	sums := func(rs []*regionOf) (score int64, members int) {
		for _, r := range rs {
			score, members = score+r.score, members+len(r.members)
		}
		return score, members
	}
	var best, path []*regionOf
	var walk func(from int)
	walk = func(from int) {
		if enough(path) {
			score, members := sums(path)
			bestScore, bestMembers := sums(best)
			if best == nil || score > bestScore || score == bestScore && members > bestMembers {
				best = slices.Clone(path)
			}
			return
		}
		for i := from; i < len(regions) && len(path) < region.MaxGroups; i++ {
			path = append(path, regions[i])
			walk(i + 1)
			path = path[:len(path)-1]
		}
	}
	walk(0)
	slices.SortFunc(best, better)
	for n := range best {
		if enough(best[:n+1]) {
			best = best[:n+1]
			break
		}
	}
	var chosen, rest []framework.Candidate
	for _, r := range best {
		chosen, rest = append(chosen, r.members[0]), append(rest, r.members[1:]...)
	}
	framework.Sort(rest)
	return append(chosen, rest[:min(len(rest), max(cluster.MaxGroups-len(chosen), 0))]...)
}

func writtenScore(in spread.Input, members []framework.Candidate, regions, clusters int) int64 {
	var sum, scores, valid int64
	if in.Placement.ReplicaScheduling == nil {
		for _, c := range members {
			if c.Available() >= in.Amount {
				valid, scores = valid+1, scores+c.Score
			}
		}
		if valid == 0 {
			return 0
		}
		return valid*1000 + scores/valid
	}
	target := (in.Amount + int64(regions) - 1) / int64(regions)
	for i, c := range members {
		sum, scores = sum+c.Available(), scores+c.Score
		if i+1 >= max(clusters, regions) && sum >= target {
			return target*1000 + scores/int64(i+1)
		}
	}
	return sum*1000 + scores/int64(len(members))
}
