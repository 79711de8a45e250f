package applier

import (
	"crypto/sha256"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// memory knows what an owner's objects looked like when they were last found
// to be as wanted. It only ever saves a dry run: an object that is not in it,
// or no longer looks the same, is compared by the server.
type memory map[inventory.ID]settled

type settled struct {
	uid               types.UID
	desired, observed [sha256.Size]byte
}

// remembers reports whether the observed object was found to be as desired
// before, and neither has changed since.
func (a *Applier) remembers(owner types.NamespacedName, desired, observed *unstructured.Unstructured) bool {
	a.mu.Lock()
	known, ok := a.memory[owner][inventory.IDOf(desired)]
	a.mu.Unlock()
	return ok && known == settle(desired, observed)
}

// remember records that the observed object is as desired.
func (a *Applier) remember(owner types.NamespacedName, desired, observed *unstructured.Unstructured) {
	known := settle(desired, observed)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.memory[owner] == nil {
		a.memory[owner] = memory{}
	}
	a.memory[owner][inventory.IDOf(desired)] = known
}

// keep forgets all objects of an owner but those of a plan.
func (a *Applier) keep(owner types.NamespacedName, changes []Change) {
	wanted := make(map[inventory.ID]bool, len(changes))
	for _, c := range changes {
		wanted[inventory.IDOf(c.Desired)] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.memory[owner] {
		if !wanted[id] {
			delete(a.memory[owner], id)
		}
	}
}

// Forget drops what is remembered of an owner that is gone.
func (a *Applier) Forget(owner types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.memory, owner)
}

func settle(desired, observed *unstructured.Unstructured) settled {
	return settled{uid: observed.GetUID(), desired: digest(desired.Object), observed: digest(observedPart(observed))}
}

// observedPart is what of an object on the hub a person or another program may
// have changed: not its status, and not what the server counts.
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
