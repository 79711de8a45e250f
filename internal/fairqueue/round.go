package fairqueue

import "container/heap"

// The rounds in which flows take turns.
const (
	byRank = iota // the most urgent key first, then the flow with the fewest workers
	byAge         // the flow whose oldest key was last handed out the longest ago
	kinds
)

// rounds hold the flows from which a key may be handed out, in the order of each
// round. A flow that had its turn goes behind all others, as does a new one, so
// that each waits for any other once at most.
type rounds[T comparable] [kinds]*round[T]

// round is a heap of flows.
type round[T comparable] struct {
	kind  int
	flows []*flow[T]
}

func newRounds[T comparable]() rounds[T] {
	return rounds[T]{{kind: byRank}, {kind: byAge}}
}

// first returns the flow whose turn it is; nil if there is none.
func (r rounds[T]) first(kind int) *flow[T] {
	if len(r[kind].flows) == 0 {
		return nil
	}
	return r[kind].flows[0]
}

// place adds a flow to the rounds, moves it to its place, or removes it.
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

// Less reports whether flow i goes before flow j.
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

// Swap swaps two flows.
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

// Pop removes the flow at the end.
func (r *round[T]) Pop() any {
	last := len(r.flows) - 1
	f := r.flows[last]
	r.flows[last] = nil
	r.flows = r.flows[:last]
	f.at[r.kind] = -1
	return f
}
