package rollup_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestServes checks which copies are known to serve nobody, whether their cluster
// is heard of or not.
func TestServes(t *testing.T) {
	applied := metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}
	refused := metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, ObservedGeneration: 1}
	says := func(health workv1alpha1.ResourceHealth, status string, conditions ...metav1.Condition) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
		w.Status.Conditions = conditions
		if health != "" {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: health}}
		}
		if status != "" {
			w.Status.ManifestStatuses[0].Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		return w
	}
	newer := says(workv1alpha1.ResourceHealthy, "", applied)
	newer.Generation = 2
	newer.Spec.SuspendDispatching = ptr.To(true)
	goes := says(workv1alpha1.ResourceHealthy, "", applied)
	goes.DeletionTimestamp = &metav1.Time{}
	cases := map[string]struct {
		work          *workv1alpha1.Work
		heard, silent bool
	}{
		"healthy":                             {says(workv1alpha1.ResourceHealthy, `{"replicas":2,"readyReplicas":2}`, applied), true, true},
		"healthy, and to be another version":  {newer, true, true},
		"healthy, and the update is refused":  {says(workv1alpha1.ResourceHealthy, "", refused), true, true},
		"one of two replicas is ready":        {says(workv1alpha1.ResourceUnhealthy, `{"replicas":2,"readyReplicas":1}`, applied), true, true},
		"one of two nodes of a DaemonSet":     {says(workv1alpha1.ResourceUnhealthy, `{"numberReady":1,"desiredNumberScheduled":2}`, applied), true, true},
		"none of two replicas is ready":       {says(workv1alpha1.ResourceUnhealthy, `{"replicas":2,"unavailableReplicas":2}`, applied), false, true},
		"a count that is no number":           {says(workv1alpha1.ResourceUnhealthy, `{"readyReplicas":"2"}`, applied), false, true},
		"unhealthy, and nothing is counted":   {says(workv1alpha1.ResourceUnhealthy, "", applied), false, true},
		"the rule for its health fails":       {says(workv1alpha1.ResourceUnknown, "", applied), true, true},
		"applied, and nothing is there":       {says("", "", applied), false, true},
		"the cluster has not said a word yet": {says("", ""), false, false},
		"the cluster would not have it":       {says("", "", refused), false, false},
		"it is being deleted":                 {goes, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rollup.Serves(tc.work, true, false); got != tc.heard {
				t.Errorf("of a cluster that is heard of: %t, want %t", got, tc.heard)
			}
			if got, want := rollup.Serves(tc.work, true, true), tc.heard && !strings.HasPrefix(name, "one of two"); got != want {
				t.Errorf("as a whole, of a cluster that is heard of: %t, want %t", got, want)
			}
			if got := rollup.Serves(tc.work, false, true); got != tc.silent {
				t.Errorf("of one that is not: %t, want %t", got, tc.silent)
			}
		})
	}
}
