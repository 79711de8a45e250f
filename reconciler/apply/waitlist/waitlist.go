// Package waitlist keeps what a Kustomization waits for, so that a change of that starts a run.
//
// In go the objects and the source that a run of the apply loop waits for; out comes whether something is among them. It
// never looks whether what is waited for has come.
package waitlist

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// List is what one Kustomization waits for. The zero value is nothing. It is safe for use by several goroutines.
type List struct {
	mu      sync.Mutex
	objects map[inventory.ID]bool
	source  inventory.Source
}

// SetObjects sets the objects that are waited for; none for nil.
func (l *List) SetObjects(ids []inventory.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objects = make(map[inventory.ID]bool, len(ids))
	for _, id := range ids {
		l.objects[id] = true
	}
}

// SetKustomizations sets the Kustomizations that are waited for, and no other object.
func (l *List) SetKustomizations(keys []client.ObjectKey) {
	ids := make([]inventory.ID, 0, len(keys))
	for _, key := range keys {
		ids = append(ids, inventory.OfKustomization(key))
	}
	l.SetObjects(ids)
}

// SetSource sets the source for whose other Kustomizations this one waits; the zero Source for none.
func (l *List) SetSource(source inventory.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = source
}

// HasObject reports whether an object is waited for.
func (l *List) HasObject(id inventory.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.objects[id]
}

// HasSource reports whether other Kustomizations of the source are waited for.
func (l *List) HasSource(source inventory.Source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source == source && source != (inventory.Source{})
}
