package rollup

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// Serves reports whether the copy that a Work is about may serve somebody: it is not known to be
// dead. Of a cluster that was heard of, what it says counts: a copy serves that is healthy or of
// unknown health, in whatever version, or, unless it has to as a whole, of which a single replica is ready. Of any other it
// serves if it has ever arrived there: what was reported of it while no loop ran, or when it had
// just begun to answer again, is not how it is. One that is being deleted serves nobody.
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
