package rollup

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Strayed is the beginning of a reason for an object that somebody changed or
// removed in its cluster and that is left so.
const Strayed = "differs from what was applied, and is left so: "

// PutBack returns what to do to have such an object put back. It is left as it is
// because of a suspension, or because of spec.drift of its policy.
func PutBack(suspended bool) string {
	if suspended {
		return "take spec.suspension out of its policy"
	}
	return "have it put back: spec.drift Revert of its policy"
}

// DriftOf returns a Work's message about drift that is not reverted; empty for none.
func DriftOf(w *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDrifted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// strayed returns the drift because of which the health of an object is not
// reported; empty where its health is known, or there is no drift.
func strayed(item *workv1alpha2.AggregatedStatusItem) string {
	if item.Health == workv1alpha2.ResourceHealthy || item.Health == workv1alpha2.ResourceUnhealthy {
		return ""
	}
	return excerpt.Message(item.Drift, mostFault)
}
