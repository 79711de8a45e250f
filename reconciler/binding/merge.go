package binding

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// optional are the annotations that a plan does not always set. If it does not,
// they are removed.
var optional = []string{
	policyv1alpha1.AppliedOverrides, policyv1alpha1.AppliedClusterOverrides, propagation.FaultAnnotation, workv1alpha2.DriftAnnotation,
	workv1alpha2.AppliedByAnnotation, workv1alpha2.LeavesFirstAnnotation,
}

// merged returns current with all that planned sets, and whether that differs.
// Labels, annotations and finalizers of others stay.
func merged(current, planned *workv1alpha1.Work) (*workv1alpha1.Work, bool) {
	planned = plan.Continued(planned, current)
	if plan.Same(planned, current) {
		return current, false
	}
	out := current.DeepCopy()
	out.Spec = planned.Spec
	out.Labels = over(current.Labels, planned.Labels)
	out.Annotations = over(current.Annotations, planned.Annotations)
	for _, key := range optional {
		if _, set := planned.Annotations[key]; !set {
			delete(out.Annotations, key)
		}
	}
	for _, finalizer := range planned.Finalizers {
		controllerutil.AddFinalizer(out, finalizer)
	}
	return out, true
}

func over(below, above map[string]string) map[string]string {
	out := make(map[string]string, len(below)+len(above))
	maps.Copy(out, below)
	maps.Copy(out, above)
	return out
}
