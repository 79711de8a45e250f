package kinds

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Object is a resource as the hub or a member holds it.
type Object = *unstructured.Unstructured

// Rules are the rules for one kind. A nil rule means that nothing is known about
// that operation. Rules never change the objects that they are given.
type Rules struct {
	// Replicas returns how many replicas the object asks for, and what each of
	// them needs; nil for nothing.
	Replicas func(obj Object) (int32, *workv1alpha2.ReplicaRequirements, error)
	// Components returns the parts of an object that has several kinds of pods,
	// each with its own number and needs.
	Components func(obj Object) ([]workv1alpha2.Component, error)
	// Revise returns a copy that asks for n replicas.
	Revise func(obj Object, n int32) (Object, error)
	// Retain returns desired without the fields that the member owns. Where a list
	// can only be applied as a whole, it returns desired with the member's entries
	// merged in.
	Retain func(desired, observed Object) (Object, error)
	// Retains reports whether Retain needs the member's object at all, or returns
	// desired in any case; nil means that it always needs it.
	Retains func(desired Object) bool
	// Reflect returns what is reported of the member's status; nil for nothing.
	Reflect func(observed Object) (map[string]any, error)
	// Health returns false for a member's object that has failed, or that nothing
	// there takes care of: it may do better in another cluster.
	Health func(observed Object) (bool, error)
	// Waits reports whether a member's object that Health calls healthy is not yet
	// what it should be: it is queued, starting, or suspended. That is shown to
	// people, but is no reason to move the object. Nil means that it never is. The
	// rule is ignored unless it is in the same layer as the Health rule that
	// applies.
	Waits func(observed Object) bool
	// Aggregate returns the template's new status.
	Aggregate func(template Object, items []workv1alpha2.AggregatedStatusItem) (map[string]any, error)
	// Unheard returns what counts for Aggregate of the status that a cluster reported
	// last, given since when nothing is heard of it: a copy. Nil means all of it. The
	// rule is ignored unless it is in the same layer as the Aggregate rule that applies.
	Unheard func(status map[string]any, since time.Time) map[string]any
	// Dependencies returns what the object cannot run without.
	Dependencies func(obj Object) ([]Dependency, error)
}

// Dependency is a resource that an object needs in its cluster: one by name, or
// all that the labels select.
type Dependency struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Namespace     string                `json:"namespace,omitempty"`
	Name          string                `json:"name,omitempty"`
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Layer provides the rules for many kinds.
type Layer interface {
	// Rules returns the rules for a kind; the zero value where the layer has none.
	Rules(gvk schema.GroupVersionKind) Rules
}

// Table is a layer whose rules are known when the program starts.
type Table map[schema.GroupVersionKind]Rules

// Rules implements Layer.
func (t Table) Rules(gvk schema.GroupVersionKind) Rules { return t[gvk] }
