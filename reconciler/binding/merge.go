package binding

import (
	"bytes"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// optional are the annotations that a plan does not always set; where it does
// not, they go.
var optional = []string{policyv1alpha1.AppliedOverrides, policyv1alpha1.AppliedClusterOverrides}

// merged returns current with all that planned says, and whether that differs.
// Labels, annotations and finalizers of others stay.
func merged(current, planned *workv1alpha1.Work) (*workv1alpha1.Work, bool) {
	out := &workv1alpha1.Work{TypeMeta: current.TypeMeta, ObjectMeta: *current.ObjectMeta.DeepCopy(), Spec: planned.Spec}
	current.Status.DeepCopyInto(&out.Status)
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
	sameMetadata := maps.Equal(out.Labels, current.Labels) && maps.Equal(out.Annotations, current.Annotations) &&
		len(out.Finalizers) == len(current.Finalizers)
	return out, !sameMetadata || !sameSpec(&current.Spec, &planned.Spec)
}

func over(below, above map[string]string) map[string]string {
	out := make(map[string]string, len(below)+len(above))
	maps.Copy(out, below)
	maps.Copy(out, above)
	return out
}

func sameSpec(a, b *workv1alpha1.WorkSpec) bool {
	if !equality.Semantic.DeepEqual(a.SuspendDispatching, b.SuspendDispatching) ||
		!equality.Semantic.DeepEqual(a.PreserveResourcesOnDeletion, b.PreserveResourcesOnDeletion) ||
		len(a.Workload.Manifests) != len(b.Workload.Manifests) {
		return false
	}
	for i := range a.Workload.Manifests {
		if !sameJSON(a.Workload.Manifests[i].Raw, b.Workload.Manifests[i].Raw) {
			return false
		}
	}
	return true
}

// sameJSON compares by bytes first: both sides are usually in canonical form.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && equality.Semantic.DeepEqual(x, y)
}
