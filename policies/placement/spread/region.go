package spread

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// group is the candidates of one region, most preferred first.
type group struct {
	name    string
	members []framework.Candidate
	score   int64
}

// perReplica makes room count for more than preference.
const perReplica = 1000

// maxVisits bounds the search for a combination of regions; beyond it the best
// combination found so far is taken.
const maxVisits = 1 << 16

// selectRegions chooses a combination of regions, takes the most preferred
// cluster of each, and fills up with the most preferred of what is left.
func selectRegions(in Input, region, cluster bounds) ([]framework.Candidate, error) {
	groups := groupBy(in, region, cluster)
	if len(groups) < region.least {
		return nil, fmt.Errorf("the number of feasible region is less than spreadConstraint.MinGroups: %d of %d",
			len(groups), region.least)
	}
	region.most = min(region.most, cluster.most)
	chosen := combine(groups, region, cluster.least)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("the number of clusters is less than the cluster spreadConstraint.MinGroups: %d of %d",
			len(in.Candidates), cluster.least)
	}
	return fill(chosen, cluster.most), nil
}

func groupBy(in Input, region, cluster bounds) []group {
	byName := map[string]*group{}
	for _, c := range in.Candidates {
		g := byName[c.Spec.Region]
		if g == nil {
			g = &group{name: c.Spec.Region}
			byName[g.name] = g
		}
		g.members = append(g.members, c)
	}
	groups := make([]group, 0, len(byName))
	for _, g := range byName {
		g.score = score(g.members, in, region, cluster)
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(a.members), len(b.members)), byScore(a, b))
	})
	return groups
}

func byScore(a, b group) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
}

// score rates a region by the room that it has for its part of the replicas.
func score(members []framework.Candidate, in Input, region, cluster bounds) int64 {
	if replicas.Duplicates(in.Placement.ReplicaScheduling) {
		return scoreDuplicated(members, int64(in.Replicas))
	}
	target := (int64(in.Replicas) + int64(region.least) - 1) / int64(region.least)
	least := max(cluster.least, region.least)
	var available, preference int64
	for i := range members {
		available += members[i].Available()
		preference += members[i].Score
		if i+1 >= least && available >= target {
			return target*perReplica + preference/int64(i+1)
		}
	}
	return available*perReplica + preference/int64(len(members))
}

func scoreDuplicated(members []framework.Candidate, need int64) int64 {
	var valid, preference int64
	for i := range members {
		if members[i].Available() >= need {
			valid++
			preference += members[i].Score
		}
	}
	if valid == 0 {
		return 0
	}
	return valid*perReplica + preference/valid
}

// search walks combinations of regions, depth first.
type search struct {
	groups       []group
	region       bounds
	leastMembers int
	visits       int
	path, best   []int
	bestScore    int64
	bestMembers  int
}

// combine returns the regions with the highest sum of scores, then the most
// clusters, then the first found; and of those no more than are needed.
func combine(groups []group, region bounds, leastMembers int) []group {
	s := &search{groups: groups, region: region, leastMembers: leastMembers}
	s.walk(0, 0, 0)
	chosen := make([]group, len(s.best))
	for i, g := range s.best {
		chosen[i] = groups[g]
	}
	slices.SortFunc(chosen, byScore)
	return shortest(chosen, region, leastMembers)
}

func (s *search) walk(from int, score int64, members int) {
	s.visits++
	if s.satisfied(len(s.path), members) {
		if s.best == nil || score > s.bestScore || score == s.bestScore && members > s.bestMembers {
			s.best, s.bestScore, s.bestMembers = slices.Clone(s.path), score, members
		}
		return
	}
	if len(s.path) >= s.region.most {
		return
	}
	for i := from; i < len(s.groups) && s.visits < maxVisits; i++ {
		s.path = append(s.path, i)
		s.walk(i+1, score+s.groups[i].score, members+len(s.groups[i].members))
		s.path = s.path[:len(s.path)-1]
	}
}

func (s *search) satisfied(regions, members int) bool {
	return regions >= s.region.least && members >= s.leastMembers
}

func shortest(chosen []group, region bounds, leastMembers int) []group {
	members := 0
	for i := range chosen {
		members += len(chosen[i].members)
		if i+1 >= region.least && members >= leastMembers {
			return chosen[:i+1]
		}
	}
	return chosen
}

// fill takes the first cluster of every region, then the most preferred of the
// others, up to most clusters.
func fill(groups []group, most int) []framework.Candidate {
	var chosen, rest []framework.Candidate
	for _, g := range groups {
		chosen = append(chosen, g.members[0])
		rest = append(rest, g.members[1:]...)
	}
	framework.Sort(rest)
	return append(chosen, rest[:min(len(rest), max(most-len(chosen), 0))]...)
}
