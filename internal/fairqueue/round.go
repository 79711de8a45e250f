package fairqueue

import "container/heap"

// The rounds that flows take turns in.
const (
	byRank = iota // the most urgent key first, then those with the fewest workers
	byAge         // whoever has not had its oldest handed out for the longest
	kinds
)

// rounds are the flows that may be handed out from, in the order of each round.
// One that had its turn goes behind all others, and so does one that is new: each
// waits for the others once at most.
type rounds[T comparable] [kinds]*round[T]

// round is a heap of flows.
type round[T comparable] struct {
	kind  int
	flows []*flow[T]
}

func newRounds[T comparable]() rounds[T] {
	return rounds[T]{{kind: byRank}, {kind: byAge}}
}

// first returns the flow whose turn it is, nil if there is none.
func (r rounds[T]) first(kind int) *flow[T] {
	if len(r[kind].flows) == 0 {
		return nil
	}
	return r[kind].flows[0]
}

// place has a flow take part or not, in its place.
func (r rounds[T]) place(f *flow[T], takesPart bool) {
	for kind, round := range r {
		switch at := f.at[kind]; {
		case takesPart && at < 0:
			heap.Push(round, f)
		case takesPart:
			heap.Fix(round, at)
		case at >= 0:
			heap.Remove(round, at)
		}
	}
}

// Less reports whether the first flow has its turn before the second.
func (r *round[T]) Less(i, j int) bool {
	a, b := r.flows[i], r.flows[j]
	switch {
	case r.kind == byRank && a.priority != b.priority:
		return a.priority > b.priority
	case r.kind == byRank && a.busy != b.busy:
		return a.busy < b.busy
	default:
		return a.turns[r.kind] < b.turns[r.kind]
	}
}

// Len returns how many flows take part.
func (r *round[T]) Len() int { return len(r.flows) }

// Swap changes the places of two flows.
func (r *round[T]) Swap(i, j int) {
	r.flows[i], r.flows[j] = r.flows[j], r.flows[i]
	r.flows[i].at[r.kind], r.flows[j].at[r.kind] = i, j
}

// Push adds a flow at the end.
func (r *round[T]) Push(f any) {
	added := f.(*flow[T])
	added.at[r.kind] = len(r.flows)
	r.flows = append(r.flows, added)
}

// Pop takes the flow at the end.
func (r *round[T]) Pop() any {
	last := len(r.flows) - 1
	f := r.flows[last]
	r.flows[last] = nil
	r.flows = r.flows[:last]
	f.at[r.kind] = -1
	return f
}
