package rollup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestWhatWasRemovedAndIsLeftSo: nobody will ever tell the health of what somebody removed
// in the cluster, where that is reported only: the reason says that, and is told once.
func TestWhatWasRemovedAndIsLeftSo(t *testing.T) {
	const removed = "Deployment shop/web was removed"
	told := rollup.Strayed + removed
	for name, tc := range map[string]struct {
		kind    string // Deployment if empty
		drifted string // what the binding, or Work, says of drift that is left so; empty for nothing
		health  workv1alpha2.ResourceHealth
		works   bool
		want    string
	}{
		"nothing is said of it":             {want: rollup.HealthAwaited},
		"its Work says so":                  {drifted: removed, works: true, want: told},
		"its binding says so":               {drifted: "a: " + removed, want: told},
		"of several clusters":               {drifted: "b: spec.replicas is 7; a, c: " + removed + "; and 3 more clusters", want: told},
		"of more than are named":            {drifted: "b, c, d and 3 more: " + removed, want: rollup.HealthAwaited},
		"of another cluster":                {drifted: "b: " + removed, want: rollup.HealthAwaited},
		"a Job is not said to run":          {kind: "Job", drifted: "a: " + removed, want: told},
		"what is there is as it is, anyway": {drifted: "a: spec.replicas is 7", health: workv1alpha2.ResourceUnhealthy, want: "not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			b, w := binding(succeeded, "a"), work("a", "True", "", tc.health, "")
			strayed := metav1.Condition{Type: workv1alpha2.Drifted, Status: metav1.ConditionTrue, Message: tc.drifted}
			var works []*workv1alpha1.Work
			switch {
			case tc.works:
				w.Status.Conditions = append(w.Status.Conditions, strayed)
				works = append(works, w)
			case tc.drifted != "":
				b.Status.Conditions = append(b.Status.Conditions, strayed)
			}
			b.Status.AggregatedStatus = rollup.Items([]*workv1alpha1.Work{w}, nil)
			of := template("Deployment")
			if tc.kind != "" {
				of = template(tc.kind)
				of.SetAPIVersion("batch/v1")
			}
			part := rollup.PartOf(of, b, works, nil).Clusters[0]
			if diff := cmp.Diff([]string{"Progressing", tc.want, ""}, []string{part.State.String(), part.Reason, part.Note}); diff != "" {
				t.Errorf("state, reason, note (-want +got):\n%s", diff)
			}
		})
	}
}
