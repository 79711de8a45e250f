package spread

import (
	"cmp"
	"slices"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// cell is the candidates that are in the same groups, most preferred first. By
// region alone each region is a cell.
type cell struct {
	name     string
	groups   [][]int // by dimension, what groups its members are in
	members  []framework.Candidate
	score    int64
	capacity int64
}

// field is all candidates in cells.
type field struct {
	in    Input
	rules rules
	cells []cell
	sizes []int // by dimension, how many groups there are
}

// perReplica makes capacity count for more than preference.
const perReplica = 1000

func group(in Input, r rules) *field {
	f := &field{in: in, rules: r, sizes: make([]int, len(r.dimensions))}
	g := grouper{ids: make([]map[string]int, len(r.dimensions)), cells: map[string]int{}}
	for i := range g.ids {
		g.ids[i] = map[string]int{}
	}
	for i := range in.Candidates {
		at, isNew := g.cell(&in.Candidates[i], r.dimensions)
		if isNew {
			f.cells = append(f.cells, cell{name: string(g.key), groups: cloneAll(g.groups)})
		}
		c := &f.cells[at]
		c.members = append(c.members, in.Candidates[i])
		c.capacity += in.Candidates[i].Available()
	}
	for i := range f.sizes {
		f.sizes[i] = len(g.ids[i])
	}
	for i := range f.cells {
		f.cells[i].score = f.score(f.cells[i].members)
	}
	slices.SortFunc(f.cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(len(a.members), len(b.members)), byScore(&a, &b))
	})
	return f
}

// grouper finds the cell of a candidate. Its buffers are used again for each.
type grouper struct {
	ids    []map[string]int // by dimension: groups by value
	cells  map[string]int
	values []string
	groups [][]int
	key    []byte
}

// cell returns the index of the cell of c, and whether it is a new one; groups
// and key are those of c then.
func (g *grouper) cell(c *framework.Candidate, dimensions []dimension) (at int, isNew bool) {
	g.key, g.groups = g.key[:0], slices.Grow(g.groups, len(dimensions))[:len(dimensions)]
	for d := range dimensions {
		g.values = dimensions[d].AppendValues(g.values[:0], c.Cluster)
		slices.Sort(g.values)
		g.values = slices.Compact(g.values)
		g.groups[d] = g.groups[d][:0]
		if d > 0 {
			g.key = append(g.key, 0)
		}
		for i, v := range g.values {
			id, ok := g.ids[d][v]
			if !ok {
				id = len(g.ids[d])
				g.ids[d][v] = id
			}
			g.groups[d] = append(g.groups[d], id)
			if i > 0 {
				g.key = append(g.key, 1)
			}
			g.key = append(g.key, v...)
		}
	}
	if at, ok := g.cells[string(g.key)]; ok {
		return at, false
	}
	g.cells[string(g.key)] = len(g.cells)
	return len(g.cells) - 1, true
}

func cloneAll(groups [][]int) [][]int {
	out := make([][]int, len(groups))
	for i := range groups {
		out[i] = slices.Clone(groups[i])
	}
	return out
}

func byScore(a, b *cell) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
}

// score rates a cell by the capacity that it has for its part of the amount.
func (f *field) score(members []framework.Candidate) int64 {
	if replicas.Duplicates(f.in.Placement.ReplicaScheduling) {
		return scoreDuplicated(members, f.in.Amount)
	}
	parts := 1
	for _, d := range f.rules.dimensions {
		parts = max(parts, d.least)
	}
	target := (f.in.Amount + int64(parts) - 1) / int64(parts)
	least := max(f.rules.clusters.least, parts)
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
