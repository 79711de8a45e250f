package execution

import (
	"fmt"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

// pausedError says what would be done to an object if nothing were held.
type pausedError struct {
	verb     string
	manifest *manifest
}

// Error says so in the words that the plan of what is held is read from.
func (e *pausedError) Error() string {
	return fmt.Sprintf("%s%s %s", workv1alpha1.WorkHeldPrefix, e.verb, e.manifest.title())
}

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
	return &pausedError{verb, m}
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
