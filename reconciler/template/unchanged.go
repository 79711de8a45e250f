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

// decide runs the phases that compute what would be written, and writes nothing.
func decide(ctx context.Context, r *Reconciler, s *state) (loop.Next, error) {
	return loop.Run(ctx, s, r.chooser.run, r.gate.check, claim, r.dryRun.run)
}

// PlacementUnchanged reports whether nothing is left to decide about a template: a pass of this loop
// would now write on its binding b which version of the template b is
// for, and nothing else. The content may then be sent to the clusters at once,
// concurrently with that write. The answer comes from the same phases that decide what
// is written.
//
// It returns false for what is not known, and if this loop has written a
// later version of b than the one given. It may change template.
func (r *Reconciler) PlacementUnchanged(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool {
	latest, _ := r.written.Latest(client.ObjectKeyFromObject(b), b, true)
	if latest.GetResourceVersion() != b.GetResourceVersion() {
		return false
	}
	s := state{key: templatestore.KeyOf(template), template: template, binding: b}
	next, err := decide(ctx, r, &s)
	return err == nil && !next.Done && s.policy != nil && s.claim == nil && !s.activation.Waits && propagation.SameDecision(b, s.desired)
}

// Undecided reports whether a pass of this loop would now change what is decided on a template's
// binding b. What is not known counts as decided.
func (r *Reconciler) Undecided(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool {
	latest, _ := r.written.Latest(client.ObjectKeyFromObject(b), b, true)
	if latest.GetResourceVersion() != b.GetResourceVersion() {
		return true
	}
	s := state{key: templatestore.KeyOf(template), template: template, binding: b}
	next, err := decide(ctx, r, &s)
	return err == nil && !next.Done && s.desired != nil && !propagation.SameDecision(b, s.desired)
}
