package rollup_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestArriving: what was sent a moment ago and has yet to become healthy most often does so at once.
func TestArriving(t *testing.T) {
	status := func(applied metav1.ConditionStatus, health ...workv1alpha1.ResourceHealth) *workv1alpha1.WorkStatus {
		out := &workv1alpha1.WorkStatus{}
		if applied != "" {
			out.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied}}
		}
		for _, h := range health {
			out.ManifestStatuses = append(out.ManifestStatuses, workv1alpha1.ManifestStatus{Health: h})
		}
		return out
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	const well, ill, unknown = workv1alpha1.ResourceHealthy, workv1alpha1.ResourceUnhealthy, workv1alpha1.ResourceUnknown
	for name, tc := range map[string]struct {
		was, is *workv1alpha1.WorkStatus
		want    bool
	}{
		"it was sent, and has yet to be healthy": {status(""), status(yes, ill), true},
		"one of two has":                         {status(""), status(yes, unknown, ill), true},
		"it was sent, and is not seen yet":       {status(""), status(yes), true},
		"it has no health":                       {status(""), status(yes, unknown), false},
		"it is well":                             {status(""), status(yes, well), false},
		"it could not be sent":                   {status(""), status(no, ill), false},
		"nothing is known of it":                 {status(""), status(""), false},
		"it was there before":                    {status(yes, well), status(yes, ill), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rollup.Arriving(tc.was, tc.is); got != tc.want {
				t.Errorf("arriving: %t", got)
			}
		})
	}
}
