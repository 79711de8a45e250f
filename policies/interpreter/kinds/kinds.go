package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Object is a resource as the hub or a member holds it.
type Object = *unstructured.Unstructured

// Rules is what is known about one kind. A rule that is nil is not known.
// Rules never change the objects that they are given.
type Rules struct {
	// Replicas returns how many replicas the object asks for, and what one of
	// them needs; nil for nothing.
	Replicas func(obj Object) (int32, *workv1alpha2.ReplicaRequirements, error)
	// Components returns the parts of an object that has several kinds of pods,
	// each with its own number and needs.
	Components func(obj Object) ([]workv1alpha2.Component, error)
	// Revise returns a copy that asks for n replicas.
	Revise func(obj Object, n int32) (Object, error)
	// Retain returns desired without what the member owns of observed, or with
	// the member's part merged in where a list can only be applied whole.
	Retain func(desired, observed Object) (Object, error)
	// Retains reports whether Retain would look at the member's object at all; nil
	// means always.
	Retains func(desired Object) bool
	// Reflect returns what is reported of the member's status; nil for nothing.
	Reflect func(observed Object) (map[string]any, error)
	// Health judges the member's object: false where it has failed, or nobody there
	// takes care of it, so that it may do better in another cluster.
	Health func(observed Object) (bool, error)
	// Waits says of a member's object that Health calls healthy whether it has yet
	// to be what it should be: it is queued, starting, or held. That is shown, and no
	// reason to move it. Nil means that it never does. It goes with Health: where
	// that comes from another layer, it does not count.
	Waits func(observed Object) bool
	// Aggregate returns the template's new status.
	Aggregate func(template Object, items []workv1alpha2.AggregatedStatusItem) (map[string]any, error)
	// Dependencies returns what the object cannot run without.
	Dependencies func(obj Object) ([]Dependency, error)
}

// Dependency is what an object needs beside it: by name, or all that labels
// select.
type Dependency struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Namespace     string                `json:"namespace,omitempty"`
	Name          string                `json:"name,omitempty"`
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Layer is rules for many kinds.
type Layer interface {
	// Rules returns what the layer knows about a kind; the zero value for
	// nothing.
	Rules(gvk schema.GroupVersionKind) Rules
}

// Table is a layer that is known from the start.
type Table map[schema.GroupVersionKind]Rules

// Rules implements Layer.
func (t Table) Rules(gvk schema.GroupVersionKind) Rules { return t[gvk] }
