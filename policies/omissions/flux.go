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
// itself, whose fields another version would take away. Definitions of other kinds are applied: objects of these kinds,
// such as HelmReleases, go to members whose Flux acts on them. What is to install Flux in members is built by a
// Kustomization elsewhere.
func Whole(obj *unstructured.Unstructured, namespace string) bool {
	labels := obj.GetLabels()
	ofFlux := labels[partOfLabel] == "flux"
	switch kind := obj.GroupVersionKind().GroupKind(); {
	case kind.Group == "apiextensions.k8s.io":
		return crds.Own(obj.GetName())
	case kind.Group == "" && kind.Kind == "Namespace": // another one holds what is the repository's
		return ofFlux && obj.GetName() == namespace
	default:
		return ofFlux && labels[instanceLabel] == namespace
	}
}
