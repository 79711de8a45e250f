package rollup

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// OfWork judges a Work by what it says of itself; the text is empty where there is nothing
// to say. A healthy one may have one: what others changed in the cluster is left so. What
// they removed is not healthy.
func OfWork(w *workv1alpha1.Work) (State, string) {
	of := func(kind string, status metav1.ConditionStatus) (string, bool) {
		c := meta.FindStatusCondition(w.Status.Conditions, kind)
		if c == nil || c.Status != status {
			return "", false
		}
		return c.Message, true
	}
	refused, failed := of(workv1alpha1.WorkApplied, metav1.ConditionFalse)
	_, applied := of(workv1alpha1.WorkApplied, metav1.ConditionTrue)
	fault, unread := of(workv1alpha1.WorkInterpreted, metav1.ConditionFalse)
	drift, strayed := of(workv1alpha1.WorkDrifted, metav1.ConditionTrue)
	switch {
	case !w.DeletionTimestamp.IsZero():
		kept, _ := of(workv1alpha1.WorkDeletionBlocked, metav1.ConditionTrue)
		return Progressing, cmp.Or(kept, "it is being taken out of this cluster")
	case w.Annotations[propagation.FaultAnnotation] != "":
		return Failed, w.Annotations[propagation.FaultAnnotation]
	case failed && !Behind(w):
		return Failed, refused
	case !applied, Behind(w):
		return Progressing, ""
	case unread:
		return Progressing, fault
	case shownOf(w) == workv1alpha2.ResourceUnhealthy:
		return Progressing, ""
	case strayed && !known(w):
		return Progressing, Strayed + drift
	case strayed:
		return Healthy, Strayed + drift
	default:
		return Healthy, ""
	}
}

// known reports whether a Work says how its first object is, which it does not of one that
// somebody removed.
func known(w *workv1alpha1.Work) bool {
	return shownOf(w) == workv1alpha2.ResourceHealthy || len(w.Status.ManifestStatuses) > 0 && w.Status.ManifestStatuses[0].Status != nil
}

// shownOf is the health of a Work's first object; empty where nothing is told.
func shownOf(w *workv1alpha1.Work) workv1alpha2.ResourceHealth {
	if len(w.Status.ManifestStatuses) == 0 {
		return ""
	}
	return Shown(w.Status.ManifestStatuses[0].Health, w.Status.ManifestStatuses[0].Status)
}
