package scheduler

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// trials are the bindings that something has asked to be placed since they were looked
// at last. The zero value is ready.
type trials struct {
	mu   sync.Mutex
	keys map[reconcile.Request]struct{}
}

func (t *trials) add(req reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys == nil {
		t.keys = map[reconcile.Request]struct{}{}
	}
	t.keys[req] = struct{}{}
}

// take reports whether req is among them, and forgets it.
func (t *trials) take(req reconcile.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, is := t.keys[req]
	delete(t.keys, req)
	return is
}
