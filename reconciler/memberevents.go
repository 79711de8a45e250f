package reconciler

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/internal/members"
)

// herald tells that there is something to do, as soon as a member says so.
type herald struct{ busy func() }

var _ members.Handler = herald{}

// Proven implements members.Handler.
func (h herald) Proven(string) { h.busy() }

// Changed implements members.Handler.
func (h herald) Changed(string, *members.Observed) { h.busy() }

// Synced implements members.Handler.
func (h herald) Synced(string, schema.GroupVersionKind) { h.busy() }

// KindsChanged implements members.Handler.
func (h herald) KindsChanged(string) { h.busy() }
