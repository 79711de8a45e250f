package rollup_test

import (
	"testing"

	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestSuspendedWork: a version that is kept from a cluster is not there, and it is told why.
func TestSuspendedWork(t *testing.T) {
	w := work("a", "True", "", workv1alpha2.ResourceHealthy, `{}`)
	w.Spec.SuspendDispatching = ptr.To(true)
	w.Generation = 2
	for i := range w.Status.Conditions {
		w.Status.Conditions[i].ObservedGeneration = 1
	}
	state, reason := rollup.Health(template("Deployment"), binding(succeeded, "a"), []*workv1alpha1.Work{w}, nil)
	if want := "a: latest version not sent: dispatching is suspended"; state != rollup.Progressing || reason != want {
		t.Errorf("health = %v %q, want %v %q", state, reason, rollup.Progressing, want)
	}
}
