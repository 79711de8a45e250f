package inventory

import "k8s.io/apimachinery/pkg/runtime/schema"

var (
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
)

// PreciousKind returns what is lost with an object of a kind and no manifest can restore, as a text; empty for kinds
// that are not precious. A precious object in use is deleted only if people name it.
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
