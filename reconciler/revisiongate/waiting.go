package revisiongate

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Waiting holds the keys that a loop enqueues once a Kustomization is switched. Use NewWaiting. It is safe for
// use by several goroutines.
type Waiting[T comparable] struct {
	put func(T)

	mu sync.Mutex
	by map[client.ObjectKey]map[T]bool
}

// NewWaiting returns one that passes the keys to put, which must return at once. It is to be
// created before the cache of the control plane starts.
func NewWaiting[T comparable](of *Tracker, put func(T)) *Waiting[T] {
	w := &Waiting[T]{put: put, by: map[client.ObjectKey]map[T]bool{}}
	of.Listen(Listener{Ended: w.release})
	return w
}

// Add makes an item wait until something about owner changes; still reports whether it has to.
func (w *Waiting[T]) Add(owner client.ObjectKey, item T, still func() bool) {
	w.mu.Lock()
	if w.by[owner] == nil {
		w.by[owner] = map[T]bool{}
	}
	w.by[owner][item] = true
	w.mu.Unlock()
	if !still() { // it ended just now
		w.release(owner)
	}
}

func (w *Waiting[T]) release(owner client.ObjectKey) {
	w.mu.Lock()
	items := w.by[owner]
	delete(w.by, owner)
	w.mu.Unlock()
	for item := range items {
		w.put(item)
	}
}
