package health

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Revision is what is judged: a revision of a source. The zero value is none in particular.
type Revision struct {
	Source client.ObjectKey
	// Kind of the source.
	Kind string
	Name string
}

// behind says that a Kustomization follows the source and has not tried the revision yet: what its conditions say is of
// another one. Empty where that is not so, or nobody waits for it: one that is suspended tries nothing.
func (r Revision) behind(obj *unstructured.Unstructured) string {
	if r.Name == "" || obj.GroupVersionKind().GroupKind() != kustomizations {
		return ""
	}
	if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended {
		return ""
	}
	ref, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "sourceRef")
	of := client.ObjectKey{Namespace: cmp.Or(ref["namespace"], obj.GetNamespace()), Name: ref["name"]}
	if of != r.Source || ref["kind"] != r.Kind {
		return ""
	}
	if tried, _, _ := unstructured.NestedString(obj.Object, "status", "lastAttemptedRevision"); tried == r.Name {
		return ""
	}
	return "has not tried revision " + r.Name + " yet"
}
