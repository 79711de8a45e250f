package spread

import "slices"

// maxVisits bounds the search for a combination of cells; beyond it the best
// combination found so far is taken, or the one with the best cells. It is more
// than there are combinations of 15 cells.
const maxVisits = 1 << 16

// search walks combinations of cells, depth first.
type search struct {
	f *field
	// need is the capacity that the chosen clusters must have together; 0 for none.
	need int64
	// kept is how many cells at the start of the path run the resource.
	kept int

	counts   [][]int // by dimension and group: how many cells of the path are in it
	groups   []int   // by dimension: how many groups the path is in
	clusters int     // the least clusters that the path stands for
	members  int
	capacity int64
	score    int64
	path     []int // indices of cells, in the order in which they were added

	visits      int // and as many as other work costs
	skipped     int
	best        []int
	bestScore   int64
	bestMembers int
}

func (f *field) search(need int64) *search {
	s := &search{f: f, need: need, groups: make([]int, len(f.sizes)), counts: make([][]int, len(f.sizes))}
	for d, n := range f.sizes {
		s.counts[d] = make([]int, n)
	}
	return s
}

// admits reports whether the cell may be added to the path.
func (s *search) admits(i int) bool {
	if s.clusters >= s.f.rules.clusters.most {
		return false
	}
	for d, groups := range s.f.cells[i].groups {
		more := 0
		for _, g := range groups {
			if s.counts[d][g] == 0 {
				more++
			}
		}
		if s.groups[d]+more > s.f.rules.dimensions[d].most {
			return false
		}
	}
	return true
}

// covers reports whether all groups of the cell are those of the path anyway.
func (s *search) covers(i int) bool {
	for d, groups := range s.f.cells[i].groups {
		for _, g := range groups {
			if s.counts[d][g] == 0 {
				return false
			}
		}
	}
	return true
}

// add appends the cell to the path, with the least number of its clusters that
// will be taken.
func (s *search) add(i, clusters int) {
	c := &s.f.cells[i]
	for d, groups := range c.groups {
		for _, g := range groups {
			if s.counts[d][g]++; s.counts[d][g] == 1 {
				s.groups[d]++
			}
		}
	}
	s.path = append(s.path, i)
	s.clusters += clusters
	s.members += len(c.members)
	s.capacity += c.capacity
	s.score += c.score
}

// drop takes back the last add.
func (s *search) drop(clusters int) {
	c := &s.f.cells[s.path[len(s.path)-1]]
	for d, groups := range c.groups {
		for _, g := range groups {
			if s.counts[d][g]--; s.counts[d][g] == 0 {
				s.groups[d]--
			}
		}
	}
	s.path = s.path[:len(s.path)-1]
	s.clusters -= clusters
	s.members -= len(c.members)
	s.capacity -= c.capacity
	s.score -= c.score
}

func (s *search) satisfied() bool {
	for d, n := range s.groups {
		if n < s.f.rules.dimensions[d].least {
			return false
		}
	}
	if s.members < s.f.rules.clusters.least || s.capacity < s.need {
		return false
	}
	if s.need == 0 || s.f.rules.clusters.most >= s.members {
		return true
	}
	s.visits += s.members
	return capacity(s.fill(true)) >= s.need
}

// run returns the path of the combination with the highest sum of scores, then
// the most clusters, then the first found, and of its cells no more than are
// needed. It goes on from the path that s has. Nil: there is none.
func (s *search) run() []int {
	start := slices.Clone(s.path)
	s.walk(0)
	found, score := s.best, s.bestScore
	if s.visits >= maxVisits {
		if path, sum := s.greedy(len(start)); path != nil && (found == nil || sum > score) {
			found = path
		}
	}
	if found == nil {
		return nil
	}
	more := slices.Clone(found[len(start):])
	s.sort(more)
	for _, i := range more {
		if len(s.path) > 0 && s.satisfied() {
			break
		}
		s.add(i, 1)
	}
	return s.path
}

func (s *search) walk(from int) {
	s.visits++
	if len(s.path) > 0 && s.satisfied() {
		if s.best == nil || s.score > s.bestScore || s.score == s.bestScore && s.members > s.bestMembers {
			s.best, s.bestScore, s.bestMembers = slices.Clone(s.path), s.score, s.members
		}
		return
	}
	for i := from; i < len(s.f.cells) && s.visits < maxVisits; i++ {
		if slices.Contains(s.path, i) || !s.admits(i) {
			if s.skipped++; s.skipped%16 == 0 {
				s.visits++
			}
			continue
		}
		s.add(i, 1)
		s.walk(i + 1)
		s.drop(1)
	}
}

// greedy takes the cells with the highest scores that may be added, until the
// constraints are satisfied, and leaves the path as it was.
func (s *search) greedy(start int) (path []int, score int64) {
	order := make([]int, len(s.f.cells))
	for i := range order {
		order[i] = i
	}
	s.sort(order)
	for _, i := range order {
		if s.satisfied() {
			break
		}
		if !slices.Contains(s.path, i) && s.admits(i) {
			s.add(i, 1)
		}
	}
	if s.satisfied() {
		path, score = slices.Clone(s.path), s.score
	}
	for len(s.path) > start {
		s.drop(1)
	}
	return path, score
}

// sort orders cells by score, then by name.
func (s *search) sort(cells []int) {
	slices.SortFunc(cells, func(a, b int) int { return byScore(&s.f.cells[a], &s.f.cells[b]) })
}
