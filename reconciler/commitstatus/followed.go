package commitstatus

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// followed are the Kustomizations whose commits have statuses. It is safe for use by
// several goroutines.
type followed struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]*memory
}

// memory is what the loop keeps of a Kustomization between runs. All of it can be lost.
type memory struct {
	// owns are the objects whose bindings, or the ends of whose Works, wake the Kustomization.
	owns map[inventory.ID]bool
	// changed is when each CommitStatus was written last.
	changed map[string]change
	// complaints are the last events, by reason, so that they are not repeated.
	complaints map[string]string
}

// change is the last write of a CommitStatus.
type change struct {
	at, since time.Time // since: of the first write of the same commit in the same state
	commit    string
	state     gitopsv1alpha1.CommitState
}

// of returns the memory of a Kustomization. mu is held.
func (f *followed) of(key client.ObjectKey) *memory {
	if f.byKey[key] == nil {
		f.byKey[key] = &memory{changed: map[string]change{}, complaints: map[string]string{}}
	}
	return f.byKey[key]
}

// own sets which objects are those of a Kustomization, and which were.
func (f *followed) own(key client.ObjectKey, entries []inventory.Entry, removed []inventory.ID) {
	owns := make(map[inventory.ID]bool, len(entries)+len(removed))
	for _, e := range entries {
		owns[e.ID] = true
	}
	for _, id := range removed {
		owns[id] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(key).owns = owns
}

// wrote records when a CommitStatus was written.
func (f *followed) wrote(cs *gitopsv1alpha1.CommitStatus, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.of(keyOf(cs)).changed
	next := change{at: at, since: at, commit: cs.Spec.Commit, state: cs.Spec.State}
	if was := last[cs.Name]; was.commit == next.commit && was.state == next.state {
		next.since = was.since
	}
	last[cs.Name] = next
}

// changed returns the last write of a CommitStatus, the zero value where there was none, and
// false where nothing is known of its Kustomization.
func (f *followed) changed(cs *gitopsv1alpha1.CommitStatus) (change, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.byKey[keyOf(cs)]
	if m == nil {
		return change{}, false
	}
	return m.changed[cs.Name], true
}

// complains reports whether a complaint differs from the last of its reason.
func (f *followed) complains(key client.ObjectKey, reason, complaint string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of(key)
	other := m.complaints[reason] != complaint
	m.complaints[reason] = complaint
	return other
}

func (f *followed) forget(key client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byKey, key)
}

// all are the Kustomizations.
func (f *followed) all() []reconcile.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	requests := make([]reconcile.Request, 0, len(f.byKey))
	for key := range f.byKey {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// owners are the Kustomizations that own an object.
func (f *followed) owners(id inventory.ID) []client.ObjectKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	var keys []client.ObjectKey
	for key, m := range f.byKey {
		if m.owns[id] {
			keys = append(keys, key)
		}
	}
	return keys
}
