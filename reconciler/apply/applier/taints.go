package applier

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// keepingTaints returns a Cluster as it is to be applied: its own taints, and those that others have put on it, such as
// the control plane for one that is not ready, ClusterTaintPolicies, and people. In server-side apply the list has one
// owner as a whole, so that an apply of the taints in Git alone would remove the others at every interval, and the
// control plane would put them back. An annotation on the Cluster records which taints came from Git, so that these can
// be distinguished from the others when they leave Git. Objects of other kinds are returned as they are.
func keepingTaints(desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	gk := desired.GroupVersionKind().GroupKind()
	if gk.Group != clusterv1alpha1.GroupName || gk.Kind != clusterv1alpha1.ResourceKindCluster {
		return desired
	}
	own, found, err := unstructured.NestedSlice(desired.Object, "spec", "taints")
	if err != nil {
		return desired
	}
	var there []any
	if observed != nil {
		if there, _, err = unstructured.NestedSlice(observed.Object, "spec", "taints"); err != nil {
			return desired
		}
	}
	before := notedTaints(observed)
	if !found && len(before) == 0 && !ownsTaints(observed) {
		return desired
	}
	if found {
		own = slices.DeleteFunc(own, ofControlPlane)
	}
	there = slices.DeleteFunc(there, func(taint any) bool {
		text, ours := textOf(taint), func(o any) bool { return textOf(o) == textOf(taint) }
		// Without the annotation an earlier version, or Flux, may have applied the taints of Git.
		unnoted := found && len(before) == 0 && !ofControlPlane(taint)
		return slices.Contains(before, text) || slices.ContainsFunc(own, ours) || unnoted
	})
	out := desired.DeepCopy()
	if unstructured.SetNestedSlice(out.Object, append(own, there...), "spec", "taints") != nil {
		return desired
	}
	noteTaints(out, own)
	return out
}

// noteTaints records in an annotation which taints of a Cluster come from Git.
func noteTaints(cluster *unstructured.Unstructured, own []any) {
	if len(own) == 0 {
		return
	}
	var texts []string
	for _, taint := range own {
		texts = append(texts, textOf(taint))
	}
	annotations := maps.Clone(cluster.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[gitopsv1alpha1.TaintsAnnotation] = strings.Join(texts, ",")
	cluster.SetAnnotations(annotations)
}

// notedTaints returns the taints that the annotation of a Cluster records, as key:effect; none for nil.
func notedTaints(cluster *unstructured.Unstructured) []string {
	if cluster == nil || cluster.GetAnnotations()[gitopsv1alpha1.TaintsAnnotation] == "" {
		return nil
	}
	return strings.Split(cluster.GetAnnotations()[gitopsv1alpha1.TaintsAnnotation], ",")
}

// ownsTaints reports whether our last apply owns the list of taints: an apply without a list would then remove
// all of it.
func ownsTaints(cluster *unstructured.Unstructured) bool {
	if cluster == nil {
		return false
	}
	for _, fields := range cluster.GetManagedFields() {
		var set fieldpath.Set
		if fields.Manager != FieldManager || fields.Operation != metav1.ManagedFieldsOperationApply || fields.FieldsV1 == nil || set.FromJSON(bytes.NewReader(fields.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		if set.Has(fieldpath.MakePathOrDie("spec", "taints")) {
			return true
		}
	}
	return false
}

func ofControlPlane(taint any) bool {
	return strings.HasPrefix(textOf(taint), clusterv1alpha1.GroupName+"/")
}

// textOf returns a taint as key:effect, which identifies it; empty for one that cannot be read.
func textOf(taint any) string {
	fields, ok := taint.(map[string]any)
	if !ok {
		return ""
	}
	key, _ := fields["key"].(string)
	effect, _ := fields["effect"].(string)
	return key + ":" + effect
}
