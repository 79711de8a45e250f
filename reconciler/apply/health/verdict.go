package health

import (
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Verdict is how one object fares.
type Verdict struct {
	ID    inventory.ID
	State rollup.State
	// Reason is empty for a healthy object.
	Reason string
	// Denied says that who asked may not read it.
	Denied bool
}

// String returns "Deployment/shop/web: eu-3: not ready 2/5".
func (v Verdict) String() string {
	if v.Reason == "" {
		return inventory.Describe(v.ID)
	}
	return inventory.Describe(v.ID) + ": " + v.Reason
}
