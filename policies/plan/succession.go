package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Succeeds reports whether a Work replaces another one, former, which is the
// same Work under a former name. Names alone are no evidence: both have the
// permanent id.
func Succeeds(work, former *workv1alpha1.Work) bool {
	id := work.Labels[workv1alpha2.WorkPermanentIDLabel]
	return id != "" && former.Labels[workv1alpha2.WorkPermanentIDLabel] == id &&
		former.Namespace == work.Namespace && former.Name != work.Name
}

// Inherited returns the status that a Work begins with which takes the place of former.
// What was applied counts as applied, manifest by manifest, where nothing but the name of
// the Work differs in it. hash is what records of manifests are made with.
func Inherited(work, former *workv1alpha1.Work, hash func([]byte) string) *workv1alpha1.WorkStatus {
	out := former.Status.DeepCopy()
	same := len(work.Spec.Workload.Manifests) == len(former.Spec.Workload.Manifests)
	for i := range work.Spec.Workload.Manifests {
		if i >= len(former.Spec.Workload.Manifests) || !sameButForName(&former.Spec.Workload.Manifests[i], &work.Spec.Workload.Manifests[i]) {
			same = false
			continue
		}
		was := hash(former.Spec.Workload.Manifests[i].Raw)
		at := slices.IndexFunc(out.Applied, func(r workv1alpha1.AppliedHash) bool { return r.Ordinal == i })
		if at >= 0 && out.Applied[at].Desired == was {
			out.Applied[at].Desired = hash(work.Spec.Workload.Manifests[i].Raw)
		}
	}
	for i := range out.Conditions {
		c := &out.Conditions[i]
		if latest := c.ObservedGeneration == 0 || c.ObservedGeneration >= former.Generation; !latest && c.Type == workv1alpha1.WorkApplied {
			same = false
		}
		c.ObservedGeneration = work.Generation
	}
	if !same { // what was applied is another version
		meta.RemoveStatusCondition(&out.Conditions, workv1alpha1.WorkApplied)
	}
	return out
}

// sameButForName reports whether two manifests differ in nothing but the name of their Work.
func sameButForName(a, b *workv1alpha1.Manifest) bool {
	var x, y unstructured.Unstructured
	if x.UnmarshalJSON(a.Raw) != nil || y.UnmarshalJSON(b.Raw) != nil {
		return false
	}
	annotations := mapOf(x.GetAnnotations())
	annotations[workv1alpha2.WorkNameAnnotation] = y.GetAnnotations()[workv1alpha2.WorkNameAnnotation]
	x.SetAnnotations(annotations)
	return equality.Semantic.DeepEqual(x.Object, y.Object)
}

// Continued returns a planned Work with the permanent id of the one that stands in its place: an id never changes, and
// another control plane, whose store was taken over, gives its own. It is planned itself where that is the id already.
func Continued(planned, current *workv1alpha1.Work) *workv1alpha1.Work {
	id := current.Labels[workv1alpha2.WorkPermanentIDLabel]
	if id == "" || id == planned.Labels[workv1alpha2.WorkPermanentIDLabel] {
		return planned
	}
	out := planned.DeepCopy()
	out.Labels[workv1alpha2.WorkPermanentIDLabel] = id
	for i := range out.Spec.Workload.Manifests {
		var obj unstructured.Unstructured
		if obj.UnmarshalJSON(out.Spec.Workload.Manifests[i].Raw) != nil {
			continue
		}
		labels := obj.GetLabels()
		if labels[workv1alpha2.WorkPermanentIDLabel] == "" {
			continue
		}
		labels[workv1alpha2.WorkPermanentIDLabel] = id
		obj.SetLabels(labels)
		if encoded, err := Encode(&obj); err == nil { // it was JSON
			out.Spec.Workload.Manifests[i] = encoded
		}
	}
	return out
}
