package staleremoval

import (
	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Stays is what is known of a copy whose removal is recalled, until its cluster has taken up the Work that comes after that removal.
const Stays = "it was there, and stays: its removal was recalled"

// Recalled reports whether a Work that is being deleted leaves what it made in its cluster, as that is wanted again. A nil Work does not.
func Recalled(w *workv1alpha1.Work) bool {
	return w != nil && w.DeletionTimestamp != nil && w.Annotations[workv1alpha2.WantedAgainAnnotation] == workv1alpha2.WantedAgain
}

// Recall returns Stays for a Work whose removal is recalled and that was applied; empty for others.
func Recall(w *workv1alpha1.Work) string {
	if !Recalled(w) || !meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) {
		return ""
	}
	return Stays
}
