package revisiongate

import (
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// definitions are the Kustomizations that have begun to write a revision, and nothing of it yet but namespaces and kinds: here, and
// by what the control plane's status says. What of it is carried is what these definitions are, with the overrides of the revision
// before; all else is of that revision as a whole, and waits for nothing: kinds may take long to be served.
type definitions struct{ begun, stated map[client.ObjectKey]bool }

func (d definitions) of(owner client.ObjectKey) bool { return d.begun[owner] || d.stated[owner] }

// Extent is what of a Kustomization is switched.
type Extent int

const (
	// None says that nothing is, or nothing more than is already.
	None Extent = iota
	// Definitions are its namespaces and kinds: the rest stands as it was, until all is switched.
	Definitions
	// All is all of it.
	All
)

// HoldsAll reports whether conditions say that a Kustomization is being switched with all that it holds, not just its definitions.
func HoldsAll(conditions []metav1.Condition) bool {
	c := apimeta.FindStatusCondition(conditions, Condition)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason != ReasonDefining
}

// isDefinition reports whether an object is a namespace or a kind.
func isDefinition(obj inventory.Labelled) bool {
	switch obj := obj.(type) {
	case *corev1.Namespace:
		return true
	case *unstructured.Unstructured:
		return inventory.StageOf(obj.GroupVersionKind().GroupKind()) == inventory.Definitions
	default:
		return false
	}
}
