package scheduler

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// requests holds the bindings for which an event has asked for a placement since they were last
// reconciled. The zero value is ready.
type requests struct {
	mu   sync.Mutex
	keys map[reconcile.Request]struct{}
}

func (r *requests) add(req reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[reconcile.Request]struct{}{}
	}
	r.keys[req] = struct{}{}
}

// take reports whether req is among them, and forgets it.
func (r *requests) take(req reconcile.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, is := r.keys[req]
	delete(r.keys, req)
	return is
}
