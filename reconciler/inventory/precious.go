package inventory

import "k8s.io/apimachinery/pkg/runtime/schema"

var (
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
)

// PreciousKind is what goes with an object of a kind and no manifest brings back, in words; empty for other kinds.
// One that is in use goes only if somebody names it.
func PreciousKind(kind schema.GroupKind) string {
	switch kind {
	case claimKind:
		return "its data"
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return "all objects of its kind"
	case namespaceKind:
		return "all that is in it"
	default:
		return ""
	}
}
