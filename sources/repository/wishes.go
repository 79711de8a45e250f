package repository

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// wishes knows when somebody last wanted each repository to be looked at: what a remote
// said before that may not be what they want to see.
type wishes struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	last  map[client.ObjectKey]time.Time
}

func newWishes(c clock.PassiveClock) *wishes {
	return &wishes{clock: c, last: map[client.ObjectKey]time.Time{}}
}

// Predicate sees the events that the loop acts on. It belongs behind those that keep others away.
func (w *wishes) Predicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { w.wanted(e.Object); return true },
		UpdateFunc: func(e event.UpdateEvent) bool { w.wanted(e.ObjectNew); return true },
		DeleteFunc: func(e event.DeleteEvent) bool { w.gone(e.Object); return true },
	}
}

func (w *wishes) wanted(object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[client.ObjectKeyFromObject(object)] = w.clock.Now()
}

func (w *wishes) gone(object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, client.ObjectKeyFromObject(object))
}

const (
	// leeway is the part of an interval by which what a remote said may be old, as for the jitter, and
	// mostLeeway the longest.
	leeway     = 20
	mostLeeway = 10 * time.Second
)

// since returns the time after which an answer of a remote was asked for that counts for a repository, whoever asked; zero if only
// one of its own does.
func (w *wishes) since(object client.Object, interval time.Duration) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	recent := w.clock.Now().Add(-min(interval/leeway, mostLeeway))
	last, known := w.last[client.ObjectKeyFromObject(object)]
	switch {
	case !known:
		return time.Time{}
	case last.After(recent):
		return last
	default:
		return recent
	}
}
