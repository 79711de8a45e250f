package omissions

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/api/crds"
)

// What flux install and flux bootstrap label all that they make with.
const (
	partOfLabel   = "app.kubernetes.io/part-of"
	instanceLabel = "app.kubernetes.io/instance"
)

// Whole reports whether nothing of an object is applied, which a Kustomization in a namespace builds: it installs Flux
// there, as a bootstrapped repository does beside its Kustomizations, or defines a kind that the control plane serves
// itself, whose fields another version would take away. What is to install Flux in members is built by a
// Kustomization elsewhere.
func Whole(obj *unstructured.Unstructured, namespace string) bool {
	labels := obj.GetLabels()
	switch kind := obj.GroupVersionKind().GroupKind(); {
	case kind.Group == "apiextensions.k8s.io" && crds.Own(obj.GetName()):
		return true
	case kind.Group == "" && kind.Kind == "Namespace": // what else is in it is the repository's
		return false
	default:
		return labels[partOfLabel] == "flux" && labels[instanceLabel] == namespace
	}
}
