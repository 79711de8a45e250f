package lanes

import "container/heap"

// The rounds that lanes take turns in.
const (
	byRank = iota // the most urgent key first, then those with the fewest workers
	byAge         // whoever has not had its oldest handed out for the longest
	kinds
)

// rounds are the lanes that may be handed out from, in the order of each round.
// One that had its turn goes behind all others, and so does one that is new: each
// waits for the others once at most.
type rounds[T comparable] [kinds]*round[T]

// round is a heap of lanes.
type round[T comparable] struct {
	kind  int
	lanes []*lane[T]
}

func newRounds[T comparable]() rounds[T] {
	return rounds[T]{{kind: byRank}, {kind: byAge}}
}

// first returns the lane whose turn it is, nil if there is none.
func (r rounds[T]) first(kind int) *lane[T] {
	if len(r[kind].lanes) == 0 {
		return nil
	}
	return r[kind].lanes[0]
}

// place has a lane take part or not, in its place.
func (r rounds[T]) place(l *lane[T], takesPart bool) {
	for kind, round := range r {
		switch at := l.at[kind]; {
		case takesPart && at < 0:
			heap.Push(round, l)
		case takesPart:
			heap.Fix(round, at)
		case at >= 0:
			heap.Remove(round, at)
		}
	}
}

// Less says which of two lanes has its turn first.
func (r *round[T]) Less(i, j int) bool {
	a, b := r.lanes[i], r.lanes[j]
	switch {
	case r.kind == byRank && a.priority != b.priority:
		return a.priority > b.priority
	case r.kind == byRank && a.busy != b.busy:
		return a.busy < b.busy
	default:
		return a.turns[r.kind] < b.turns[r.kind]
	}
}

// Len returns how many lanes take part.
func (r *round[T]) Len() int { return len(r.lanes) }

// Swap changes the places of two lanes.
func (r *round[T]) Swap(i, j int) {
	r.lanes[i], r.lanes[j] = r.lanes[j], r.lanes[i]
	r.lanes[i].at[r.kind], r.lanes[j].at[r.kind] = i, j
}

// Push adds a lane at the end.
func (r *round[T]) Push(l any) {
	added := l.(*lane[T])
	added.at[r.kind] = len(r.lanes)
	r.lanes = append(r.lanes, added)
}

// Pop takes the lane at the end.
func (r *round[T]) Pop() any {
	last := len(r.lanes) - 1
	l := r.lanes[last]
	r.lanes[last] = nil
	r.lanes = r.lanes[:last]
	l.at[r.kind] = -1
	return l
}
