package template

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// revisionGate keeps the loop from acting on a template while the template, its policy, or its previous policy is part
// of a revision that is half written, and while a template that left its revision has yet to be deleted. See
// docs/design/0009.
type revisionGate struct {
	owner    func(ctx context.Context, template *unstructured.Unstructured) (policyv1alpha1.Policy, error)
	switches *revisiongate.Tracker
	waiting  *revisiongate.Waiting[templatestore.Key]
}

func newRevisionGate(owner func(context.Context, *unstructured.Unstructured) (policyv1alpha1.Policy, error), switches *revisiongate.Tracker, again func(templatestore.Key)) revisionGate {
	g := revisionGate{owner: owner, switches: switches}
	if switches != nil {
		g.waiting = revisiongate.NewWaiting(switches, again)
	}
	return g
}

// check ends a prediction, which is never repeated, if the gate is closed.
func (g revisionGate) check(ctx context.Context, s *state) (loop.Next, error) {
	_, switching, err := g.switching(ctx, s)
	s.left = g.left(s)
	return loop.Next{Done: switching}, err
}

func (g revisionGate) left(s *state) bool {
	if g.switches == nil {
		return false
	}
	_, left, _ := g.switches.Left(s.template)
	return left
}

// wait ends a pass if the gate is closed. The template is enqueued once the revision is completely written.
func (g revisionGate) wait(ctx context.Context, s *state) (loop.Next, error) {
	owner, switching, err := g.switching(ctx, s)
	if s.left = g.left(s); switching {
		s.awaits = true
		g.waiting.Add(owner, s.key, func() bool { _, switching, err := g.switching(ctx, s); return switching || err != nil })
	}
	return loop.Next{Done: switching}, err
}

func (g revisionGate) switching(ctx context.Context, s *state) (client.ObjectKey, bool, error) {
	if g.switches == nil {
		return client.ObjectKey{}, false, nil
	}
	if owner, _, stays := g.switches.Left(s.template); stays {
		return owner, true, nil
	}
	owner, err := g.owner(ctx, s.template)
	if err != nil {
		return client.ObjectKey{}, false, err
	}
	for _, of := range []inventory.Labelled{s.template, s.policy, s.from, owner} {
		if owner, switching := g.switches.Switching(of); switching {
			return owner, true, nil
		}
	}
	return client.ObjectKey{}, false, nil
}
