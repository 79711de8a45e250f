package rollup

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Strayed is how a reason begins that says of an object that others changed it in its
// cluster, or removed it, and that it is left so.
const Strayed = "differs from what was applied, and is left so: "

// PutBack is what has an object that others changed or removed put back, other than that they
// do it themselves: what leaves it so is a suspension, or the policy's drift.
func PutBack(suspended bool) string {
	if suspended {
		return "take spec.suspension out of its policy"
	}
	return "have it put back: spec.drift Revert of its policy"
}

// DriftOf is what a Work says of what others changed in its cluster and is left so; empty
// for nothing.
func DriftOf(w *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDrifted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// strayed is why nobody reports the health of an object: somebody removed or changed it, and it
// is left so. Empty where that is not so, or where it is not known.
func strayed(item *workv1alpha2.AggregatedStatusItem) string {
	if item.Health == workv1alpha2.ResourceHealthy || item.Health == workv1alpha2.ResourceUnhealthy {
		return ""
	}
	return excerpt.Message(item.Drift, mostFault)
}
