package template

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// PlacementUnchanged reports whether nothing is left to decide about a template: this loop,
// looking at it now, would write on its binding b which version of it b stands
// for, and nothing else. Its content may then reach the clusters at once, side
// by side with that write. The answer comes from the very phases that decide what
// is written.
//
// What is not known does not count as unchanged, and neither is what this loop has decided
// on a later version of b than the one given. Template may be changed.
func (r *Reconciler) PlacementUnchanged(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool {
	latest, _ := r.written.Latest(client.ObjectKeyFromObject(b), b, true)
	if latest.GetResourceVersion() != b.GetResourceVersion() {
		return false
	}
	s := state{key: templatestore.KeyOf(template), template: template, binding: b}
	next, err := loop.Run(ctx, &s, r.decide...)
	return err == nil && !next.Done && s.policy != nil && s.claim == nil && !s.activation.Waits && propagation.SameDecision(b, s.desired)
}

// Undecided reports whether this loop is still going to decide otherwise about a template than its
// binding b says. What is not known counts as decided.
func (r *Reconciler) Undecided(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool {
	latest, _ := r.written.Latest(client.ObjectKeyFromObject(b), b, true)
	if latest.GetResourceVersion() != b.GetResourceVersion() {
		return true
	}
	s := state{key: templatestore.KeyOf(template), template: template, binding: b}
	next, err := loop.Run(ctx, &s, r.decide...)
	return err == nil && !next.Done && s.desired != nil && !propagation.SameDecision(b, s.desired)
}
