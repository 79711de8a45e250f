package spread

import (
	"cmp"
	"slices"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// stay returns a selection that has all clusters that run the resource today,
// and false where nothing runs, or the constraints or the lack of capacity do not
// let them.
func (f *field) stay() ([]framework.Candidate, bool) {
	need := int64(0)
	if f.in.divides() {
		need = f.in.Amount
	}
	if need > 0 && f.mostCapacity() < need {
		return nil, false
	}
	s := f.search(need)
	for i := range f.cells {
		n := 0
		for j := range f.cells[i].members {
			n += boolInt(f.cells[i].members[j].Targeted)
		}
		if n == 0 {
			continue
		}
		if !s.admits(i) || s.clusters+n > f.rules.clusters.most {
			return nil, false
		}
		s.add(i, n)
	}
	if len(s.path) == 0 {
		return nil, false
	}
	s.kept = len(s.path)
	if s.run() == nil {
		return nil, false
	}
	return s.fillFor(need), true
}

// choose returns a selection that does not mind where the resource runs, other
// than by the preference for such clusters; and false where none satisfies the
// constraints. Only if the best one lacks capacity it looks for others.
func (f *field) choose() ([]framework.Candidate, bool) {
	chosen, ok := f.byFirst()
	if !ok {
		s := f.search(0)
		if s.run() == nil {
			return nil, false
		}
		chosen = s.fill(false)
	}
	if !f.in.divides() || capacity(chosen) >= f.in.Amount {
		return chosen, true
	}
	if f.mostCapacity() < f.in.Amount {
		return chosen, true
	}
	if s := f.search(f.in.Amount); s.run() != nil {
		return s.fillFor(f.in.Amount), true
	}
	return chosen, true
}

// mostCapacity returns the capacity of the roomiest clusters, as many as are allowed.
func (f *field) mostCapacity() int64 {
	all := slices.Clone(f.in.Candidates)
	sortByCapacity(all)
	return capacity(all[:min(len(all), f.rules.clusters.most)])
}

// byFirst chooses by the first dimension alone, and reports whether the others are
// satisfied by that.
func (f *field) byFirst() ([]framework.Candidate, bool) {
	if len(f.rules.dimensions) == 1 {
		return nil, false
	}
	first := group(f.in, rules{clusters: f.rules.clusters, dimensions: f.rules.dimensions[:1]})
	s := first.search(0)
	if s.run() == nil {
		return nil, false
	}
	chosen := s.fill(false)
	for _, d := range f.rules.dimensions[1:] {
		if n := len(groupsOf(d.Grouping, chosen)); n < d.least || n > d.most {
			return nil, false
		}
	}
	return chosen, true
}

// fillFor takes the most preferred clusters if they have capacity for need, and the
// roomiest otherwise.
func (s *search) fillFor(need int64) []framework.Candidate {
	if chosen := s.fill(false); capacity(chosen) >= need {
		return chosen
	}
	return s.fill(true)
}

// fill takes of the first cells of the path, the kept ones, what runs the
// resource, of each other cell its first cluster, and then the most preferred
// of all that is left in these groups, as many as are allowed. Roomy prefers
// capacity to everything else.
func (s *search) fill(roomy bool) []framework.Candidate {
	var chosen, rest []framework.Candidate
	for at, i := range s.path {
		members := s.f.cells[i].members
		if roomy {
			members = slices.Clone(members)
			sortByCapacity(members)
		}
		for j := range members {
			if at < s.kept && members[j].Targeted || at >= s.kept && j == 0 {
				chosen = append(chosen, members[j])
			} else {
				rest = append(rest, members[j])
			}
		}
	}
	for i := range s.f.cells {
		if s.covers(i) && !slices.Contains(s.path, i) {
			rest = append(rest, s.f.cells[i].members...)
		}
	}
	framework.Sort(rest)
	if roomy {
		sortByCapacity(rest)
	}
	return append(chosen, rest[:min(len(rest), max(s.f.rules.clusters.most-len(chosen), 0))]...)
}

func sortByCapacity(cs []framework.Candidate) {
	slices.SortStableFunc(cs, func(a, b framework.Candidate) int { return cmp.Compare(b.Available(), a.Available()) })
}
