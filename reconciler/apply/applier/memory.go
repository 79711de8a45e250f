package applier

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// memory remembers what objects looked like when they were last found to be as
// wanted. It only ever saves a dry run: the server compares every object that is not in it,
// or has changed since. The zero value is empty. It is safe for use by
// several goroutines.
type memory struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]map[inventory.ID]fingerprint
}

// fingerprint identifies an object as it was wanted and as it was observed at that time.
type fingerprint struct {
	uid               types.UID
	desired, observed [sha256.Size]byte
}

func fingerprintOf(desired, observed *unstructured.Unstructured) fingerprint {
	return fingerprint{uid: observed.GetUID(), desired: digest(desired.Object), observed: digest(observedPart(observed))}
}

// has reports whether the observed object was found to be as desired before, and neither
// has changed since.
func (m *memory) has(owner types.NamespacedName, desired, observed *unstructured.Unstructured) bool {
	m.mu.Lock()
	known, ok := m.byOwner[owner][inventory.IDOf(desired)]
	m.mu.Unlock()
	return ok && known == fingerprintOf(desired, observed)
}

// put records that the observed object is as desired.
func (m *memory) put(owner types.NamespacedName, desired, observed *unstructured.Unstructured) {
	known := fingerprintOf(desired, observed)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byOwner == nil {
		m.byOwner = map[types.NamespacedName]map[inventory.ID]fingerprint{}
	}
	if m.byOwner[owner] == nil {
		m.byOwner[owner] = map[inventory.ID]fingerprint{}
	}
	m.byOwner[owner][inventory.IDOf(desired)] = known
}

// keep forgets all objects of an owner but those of a plan.
func (m *memory) keep(owner types.NamespacedName, changes []Change) {
	wanted := make(map[inventory.ID]bool, len(changes))
	for _, c := range changes {
		wanted[inventory.IDOf(c.Desired)] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.byOwner[owner] {
		if !wanted[id] {
			delete(m.byOwner[owner], id)
		}
	}
}

// forget drops all objects of an owner.
func (m *memory) forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byOwner, owner)
}

// observedPart returns the part of an object on the hub that a person or another program may have
// changed in a way that matters: not its status, and of its metadata only labels and annotations.
func observedPart(obj *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(obj.Object))
	for key, value := range obj.Object {
		if key != "status" && key != "metadata" {
			out[key] = value
		}
	}
	out["labels"] = obj.GetLabels()
	out["annotations"] = obj.GetAnnotations()
	return out
}

// digest hashes a JSON value; maps are written with sorted keys.
func digest(value map[string]any) [sha256.Size]byte {
	// A value that came from JSON or YAML can always be written as JSON.
	raw, _ := json.Marshal(value)
	return sha256.Sum256(raw)
}
