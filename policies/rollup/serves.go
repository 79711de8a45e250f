package rollup

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// Serves reports whether the copy in a Work's cluster may serve anybody, which is true unless it is known that it
// does not. If the cluster has been heard of, its report counts: a copy serves that is healthy or of unknown
// health, in whatever version, or, unless whole is set, one with a single ready replica. Otherwise a copy serves if
// it was ever applied: what was reported while no loop ran, or when the cluster had just come back, need not be
// true now. A copy that is being deleted serves nobody.
func Serves(w *workv1alpha1.Work, heard, whole bool) bool {
	statuses := w.Status.ManifestStatuses
	switch {
	case w.DeletionTimestamp != nil:
		return false
	case !heard:
		return len(statuses) > 0 || meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied)
	default:
		return slices.ContainsFunc(statuses, func(m workv1alpha1.ManifestStatus) bool {
			return eviction.Serving(m.Health, m.Status, whole)
		})
	}
}
