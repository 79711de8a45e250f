package inventory

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels that name the Kustomization that owns an object. They are Flux's.
var (
	nameLabel      = kustomizev1.GroupVersion.Group + "/name"
	namespaceLabel = kustomizev1.GroupVersion.Group + "/namespace"
)

// OwnerLabels returns the labels that objects of the owner carry.
func OwnerLabels(owner types.NamespacedName) map[string]string {
	return map[string]string{nameLabel: owner.Name, namespaceLabel: owner.Namespace}
}

// OwnerOf returns the Kustomization that an object's labels name.
func OwnerOf(obj Labelled) (types.NamespacedName, bool) {
	labels := obj.GetLabels()
	owner := types.NamespacedName{Namespace: labels[namespaceLabel], Name: labels[nameLabel]}
	return owner, owner.Name != "" && owner.Namespace != ""
}

// Labelled is an object with labels.
type Labelled interface{ GetLabels() map[string]string }
