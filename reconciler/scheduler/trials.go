package scheduler

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
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

// tried notes that something asks for b to be placed, where each trial is dated.
func (r *Reconciler) tried(b workv1alpha2.Binding) {
	if r.opts.DateEachTrial {
		r.trials.add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	}
}
