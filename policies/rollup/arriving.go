package rollup

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// Arriving reports whether a Work is about to say for the first time that it was applied, and an object of it has yet to be seen,
// or to be healthy: most often it is in a moment.
func Arriving(was, is *workv1alpha1.WorkStatus) bool {
	if len(was.ManifestStatuses) > 0 || !meta.IsStatusConditionTrue(is.Conditions, workv1alpha1.WorkApplied) {
		return false
	}
	return len(is.ManifestStatuses) == 0 || slices.ContainsFunc(is.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool {
		return m.Health == workv1alpha1.ResourceUnhealthy
	})
}
