package inventory

import (
	"cmp"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Stage is a step of an apply: the objects of an earlier one are written before
// a later one begins.
type Stage int

const (
	// Definitions are what other objects need before they can be created: kinds and
	// namespaces.
	Definitions Stage = iota
	// Overrides say what differs per cluster. They come before the policies, so
	// that nothing reaches a cluster without them.
	Overrides
	// Policies say where templates run. They come before the templates, which are
	// propagated as soon as they exist.
	Policies
	// Templates is everything else.
	Templates
	// Hooks are webhook configurations: last, so that they cannot refuse what
	// they depend on.
	Hooks
)

// stages lists the kinds that do not belong to Templates.
var stages = map[schema.GroupKind]Stage{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: Definitions,
	{Kind: "Namespace"}: Definitions,
	{Group: "policy.karmada.io", Kind: "OverridePolicy"}:                            Overrides,
	{Group: "policy.karmada.io", Kind: "ClusterOverridePolicy"}:                     Overrides,
	{Group: "policy.karmada.io", Kind: "PropagationPolicy"}:                         Policies,
	{Group: "policy.karmada.io", Kind: "ClusterPropagationPolicy"}:                  Policies,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   Hooks,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: Hooks,
}

// StageOf returns the stage in which objects of a kind are applied.
func StageOf(kind schema.GroupKind) Stage {
	if stage, ok := stages[kind]; ok {
		return stage
	}
	return Templates
}

// Sort sorts objects in the order in which they are applied: by stage, and
// within a stage in the order of kinds of Flux's library.
func Sort(objects []*unstructured.Unstructured) {
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return compareOrder(IDOf(a), IDOf(b))
	})
}

// SortForRemoval sorts entries in the order in which they are deleted: the
// reverse of the order of their apply.
func SortForRemoval(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return compareOrder(b.ID, a.ID) })
}

func compareOrder(a, b ID) int {
	if byStage := cmp.Compare(StageOf(a.GroupKind), StageOf(b.GroupKind)); byStage != 0 {
		return byStage
	}
	if a.GroupKind == b.GroupKind {
		return compareIDs(a, b)
	}
	if ssa.IsLessThan(a.GroupKind, b.GroupKind) {
		return -1
	}
	return 1
}
