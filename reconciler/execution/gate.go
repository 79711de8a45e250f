package execution

import (
	"context"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// held reports whether nothing is changed in a cluster.
func (o *Options) held(cluster string) bool { return o.Hold != nil && o.Hold(cluster) != nil }

// paused refuses to change anything in the member while the hub waits: it was set
// back to an older backup, and what it knows is older than what runs. Watches do not show
// what is not managed here: the member is asked whether that is in the way of what would be made.
func paused(ctx context.Context, l *lane, s *state, m *manifest, act action, presence members.Presence) error {
	if !l.options.held(l.cluster) {
		return nil
	}
	p := &outcome.Held{Verb: outcome.Change, Title: m.title()}
	switch {
	case presence == members.Absent || act == restore:
		p.Verb = outcome.Make
		live, err := s.member.Get(ctx, m.gvk, m.key)
		desired, fault := m.object(s.work)
		if err != nil || fault != nil {
			return p // it is not there, or nobody knows
		}
		if !mayTake(s, m, desired, live) {
			return s.taken(m, live)
		}
		p.Verb = outcome.Change
	case act == correct:
		p.Verb = outcome.SetBack
	}
	return p
}

// Wake has every Work looked at that something is refused to: nothing is held any
// more.
func (r *Reconciler) Wake() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, lane := range r.lanes {
		lane.queue.Release(func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnRetry })
	}
}
