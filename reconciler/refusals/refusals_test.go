package refusals_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
)

// TestWhatIsRefused: what a spec asks for is refused at any revision, unless a revision may bring what it lacks.
func TestWhatIsRefused(t *testing.T) {
	for reason, want := range map[string]struct{ bySpec, atAny bool }{
		acl.AccessDeniedReason:          {true, true},
		refusals.InvalidAccount:         {true, true},
		refusals.InvalidAnnotation:      {true, true},
		refusals.NotSupported:           {true, true},
		refusals.DependencyCycle:        {bySpec: true}, // another revision may change the other one
		refusals.EmptyBuild:             {bySpec: true},
		inventory.ReasonPathNotFound:    {bySpec: true},
		meta.InvalidCELExpressionReason: {bySpec: true}, // what the revision holds is written before that is seen
		meta.BuildFailedReason:          {},
		inventory.ReasonPruneBlocked:    {},
		"":                              {},
	} {
		if got := refusals.BySpec(reason); got != want.bySpec {
			t.Errorf("%q is about the spec: %t", reason, got)
		}
		if got := refusals.AtAnyRevision(reason); got != want.atAny {
			t.Errorf("%q refuses any revision: %t", reason, got)
		}
	}
}
