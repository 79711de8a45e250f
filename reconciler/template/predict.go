package template

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Predict returns the claim that the loop would write on an object that is
// about to be created, by running the phase that decides it; false if it would write none,
// or that is not known. It reads from the loop's caches, which must be
// complete.
func (r *Reconciler) Predict(ctx context.Context, gvk schema.GroupVersionKind, obj metav1.Object) (propagation.Claim, bool) {
	if !propagation.PropagatesKind(gvk, r.opts.Skip) || hasClaim(obj) {
		return propagation.Claim{}, false
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(gvk)
	template.SetNamespace(obj.GetNamespace())
	template.SetName(obj.GetName())
	template.SetLabels(obj.GetLabels())
	s := state{key: templatestore.KeyOf(template), template: template}
	next, err := r.chooser.run(ctx, &s)
	if err != nil || next.Done || s.policy == nil {
		return propagation.Claim{}, false
	}
	return propagation.ClaimOf(s.policy), true
}

// Carries reports whether a policy carries obj, which exists, or will carry it once this loop
// has reconciled it. A Lazy policy that waits for a change of obj does neither.
func (r *Reconciler) Carries(ctx context.Context, obj *unstructured.Unstructured) bool {
	if _, claimed := propagation.Claimed(obj); claimed {
		return !propagation.WaitsForChange(obj)
	}
	_, will := r.Predict(ctx, obj.GroupVersionKind(), obj)
	return will
}

// hasClaim reports whether obj already has any part of a claim, with which only the loop can
// deal.
func hasClaim(obj metav1.Object) bool {
	labels, annotations := propagation.ClaimKeys()
	has := func(of map[string]string) func(string) bool {
		return func(key string) bool { _, ok := of[key]; return ok }
	}
	return slices.ContainsFunc(labels, has(obj.GetLabels())) || slices.ContainsFunc(annotations, has(obj.GetAnnotations()))
}
