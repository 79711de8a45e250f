package health

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Revision is the revision of a source that is judged. The zero value stands for no particular one.
type Revision struct {
	Source inventory.Source
	Name   string
}

// behind returns a text if obj is a Kustomization that follows the source and has not tried the revision yet: its
// conditions are then about another revision. It is empty else, and for a suspended one, which would be waited for
// without end.
func (r Revision) behind(obj *unstructured.Unstructured) string {
	if r.Name == "" || obj.GroupVersionKind().GroupKind() != kustomizations {
		return ""
	}
	if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended {
		return ""
	}
	ref, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "sourceRef")
	of := inventory.Source{Kind: ref["kind"], ObjectKey: client.ObjectKey{Namespace: cmp.Or(ref["namespace"], obj.GetNamespace()), Name: ref["name"]}}
	if of != r.Source {
		return ""
	}
	if tried, _, _ := unstructured.NestedString(obj.Object, "status", "lastAttemptedRevision"); tried == r.Name {
		return ""
	}
	return "has not tried revision " + r.Name + " yet"
}
