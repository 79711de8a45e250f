package reconciler

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/internal/members"
)

// memberEvents calls busy whenever a member shows anything new: whoever saves work while nothing happens goes on.
type memberEvents struct{ busy func() }

var _ members.Handler = memberEvents{}

// Proven implements members.Handler.
func (e memberEvents) Proven(string) { e.busy() }

// Changed implements members.Handler.
func (e memberEvents) Changed(string, *members.Observed) { e.busy() }

// Synced implements members.Handler.
func (e memberEvents) Synced(string, schema.GroupVersionKind) { e.busy() }

// KindsChanged implements members.Handler.
func (e memberEvents) KindsChanged(string) { e.busy() }
