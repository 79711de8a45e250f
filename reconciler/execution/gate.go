package execution

import (
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
)

// held says whether nothing is changed in a cluster.
func (o *Options) held(cluster string) bool { return o.Hold != nil && o.Hold(cluster) != nil }

// paused refuses to change anything in the member while the hub waits: it was set
// back to an older backup, and what it knows is older than what runs.
func (o *Options) paused(cluster string, m *manifest, act action, presence members.Presence) error {
	if !o.held(cluster) {
		return nil
	}
	verb := "change"
	switch {
	case presence == members.Absent || act == restore:
		verb = "make"
	case act == correct:
		verb = "set back"
	}
	return &outcome.Paused{Verb: verb, Title: m.title()}
}

// Wake has every Work looked at that something is refused to: nothing is held any
// more.
func (r *Reconciler) Wake() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, lane := range r.lanes {
		lane.line.release(func(c cause) bool { return c.event == onRetry })
	}
}
