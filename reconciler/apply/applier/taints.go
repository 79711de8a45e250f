package applier

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// keepingTaints returns a Cluster as it is to be applied: with the taints that the control plane has put on it,
// such as that of one that is not ready. The list belongs to one writer as a whole, so that a Cluster in Git
// with taints of its own took those off at each look, and the control plane put them back. Anything else is
// returned as it is.
func keepingTaints(desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	gk := desired.GroupVersionKind().GroupKind()
	if observed == nil || gk.Group != clusterv1alpha1.GroupName || gk.Kind != clusterv1alpha1.ResourceKindCluster {
		return desired
	}
	own, found, err := unstructured.NestedSlice(desired.Object, "spec", "taints")
	if err != nil || !found {
		return desired
	}
	there, _, err := unstructured.NestedSlice(observed.Object, "spec", "taints")
	if err != nil {
		return desired
	}
	kept := slices.DeleteFunc(there, func(taint any) bool { return !strings.HasPrefix(keyOf(taint), clusterv1alpha1.GroupName+"/") })
	if len(kept) == 0 {
		return desired
	}
	own = slices.DeleteFunc(own, func(taint any) bool { return strings.HasPrefix(keyOf(taint), clusterv1alpha1.GroupName+"/") })
	out := desired.DeepCopy()
	if unstructured.SetNestedSlice(out.Object, append(own, kept...), "spec", "taints") != nil {
		return desired
	}
	return out
}

func keyOf(taint any) string {
	fields, ok := taint.(map[string]any)
	if !ok {
		return ""
	}
	key, _ := fields["key"].(string)
	return key
}
