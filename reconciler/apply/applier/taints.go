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

// keepingTaints returns a Cluster as it is to be applied: with the taints that others have put on it, such as those that
// say that it is not ready, of ClusterTaintPolicies, and of people. The list belongs to one writer as a whole, so that a Cluster in Git
// with taints of its own took those off at each look, and the control plane put them back. What Git put on it is
// noted on it, as that has to be found among what others wrote once Git has none. Anything else is
// returned as it is.
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
		unnoted := found && len(before) == 0 && !ofControlPlane(taint) // by whoever applied it before what Git puts there was noted
		return slices.Contains(before, text) || slices.ContainsFunc(own, ours) || unnoted
	})
	out := desired.DeepCopy()
	if unstructured.SetNestedSlice(out.Object, append(own, there...), "spec", "taints") != nil {
		return desired
	}
	noteTaints(out, own)
	return out
}

// noteTaints notes on a Cluster the taints that Git puts on it.
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

// notedTaints are those that are noted on a Cluster; none on one that is nil.
func notedTaints(cluster *unstructured.Unstructured) []string {
	if cluster == nil || cluster.GetAnnotations()[gitopsv1alpha1.TaintsAnnotation] == "" {
		return nil
	}
	return strings.Split(cluster.GetAnnotations()[gitopsv1alpha1.TaintsAnnotation], ",")
}

// ownsTaints reports whether the list is what was applied last: applied without it, all of it would go.
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

// textOf is key:effect of a taint.
func textOf(taint any) string {
	fields, ok := taint.(map[string]any)
	if !ok {
		return ""
	}
	key, _ := fields["key"].(string)
	effect, _ := fields["effect"].(string)
	return key + ":" + effect
}
