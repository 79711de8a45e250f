package binding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
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
	workv1alpha2.AppliedByAnnotation,
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

// patchOf returns the merge patch from current to desired. Manifests, which are
// nearly all of a Work, are written whole if they differ, and not compared key by
// key, as a merge patch replaces lists anyway. They are also written if the recorded authors
// change: manifests that somebody wrote meanwhile must not be attributed to these.
func patchOf(current, desired *workv1alpha1.Work) ([]byte, error) {
	patch := map[string]any{}
	data, err := client.MergeFrom(outline(current)).Data(outline(desired))
	if err == nil {
		err = json.Unmarshal(data, &patch)
	}
	if err != nil {
		return nil, fmt.Errorf("compare two states of a work: %w", err)
	}
	manifests := desired.Spec.Workload.Manifests
	if current.Annotations[workv1alpha2.AppliedByAnnotation] != desired.Annotations[workv1alpha2.AppliedByAnnotation] ||
		!slices.EqualFunc(current.Spec.Workload.Manifests, manifests, sameBytes) {
		spec, _ := patch["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		spec["workload"] = map[string]any{"manifests": manifests}
		patch["spec"] = spec
	}
	if data, err = json.Marshal(patch); err != nil {
		return nil, fmt.Errorf("encode the patch of a work: %w", err)
	}
	return data, nil
}

// sameBytes reports whether two manifests are the same bytes. It is much faster than a comparison by reflection.
func sameBytes(a, b workv1alpha1.Manifest) bool { return bytes.Equal(a.Raw, b.Raw) }

// outline returns the part of a Work that the loop writes, without its manifests.
func outline(w *workv1alpha1.Work) *workv1alpha1.Work {
	out := &workv1alpha1.Work{Spec: w.Spec}
	out.Labels, out.Annotations, out.Finalizers = w.Labels, w.Annotations, w.Finalizers
	out.Spec.Workload.Manifests = nil
	return out
}

func over(below, above map[string]string) map[string]string {
	out := make(map[string]string, len(below)+len(above))
	maps.Copy(out, below)
	maps.Copy(out, above)
	return out
}
