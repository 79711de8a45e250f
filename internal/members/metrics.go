package members

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// Count registers the metrics of how far the members' watches are, and what waits to be looked
// at again.
func (r *Registry) Count(registry prometheus.Registerer) {
	stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{
		Name: "flotilla_member_watches", Help: "Kinds that are watched in members, by state: ready where the whole list was seen and the watch stands, or pending",
	}, "state", func() map[string]int {
		ready, pending, _, _ := r.depth()
		return map[string]int{"ready": ready, "pending": pending}
	}))
	stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{
		Name: "flotilla_member_rechecks", Help: "Objects in members whose status or health nobody could say yet, by state: queued for their turn, or reading where the member is asked",
	}, "state", func() map[string]int {
		_, _, turn, read := r.depth()
		return map[string]int{"queued": turn, "reading": read}
	}))
}

// depth adds up what the informers of all members say.
func (r *Registry) depth() (ready, pending, turn, read int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, e := range r.members {
		is, isNot := e.member.informer.Watches()
		due, reading := e.member.informer.Rechecks()
		ready, pending, turn, read = ready+is, pending+isNot, turn+due, read+reading
	}
	return ready, pending, turn, read
}
