package template

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/switching"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// wholly leaves a template as it stands while it, the policy that carries it, or the one that did is part
// of a revision that is half written, and for as long as it left its revision and has yet to go.
type wholly struct {
	owner    func(ctx context.Context, template *unstructured.Unstructured) (policyv1alpha1.Policy, error)
	switches *switching.Tracker
	waiting  *switching.Waiting[templatestore.Key]
}

func newWholly(owner func(context.Context, *unstructured.Unstructured) (policyv1alpha1.Policy, error), switches *switching.Tracker, again func(templatestore.Key)) wholly {
	w := wholly{owner: owner, switches: switches}
	if switches != nil {
		w.waiting = switching.NewWaiting(switches, again)
	}
	return w
}

// check ends a pass that only asks.
func (p wholly) check(ctx context.Context, s *state) (loop.Next, error) {
	_, switching, err := p.switching(ctx, s)
	s.left = p.left(s)
	return loop.Next{Done: switching}, err
}

func (p wholly) left(s *state) bool {
	if p.switches == nil {
		return false
	}
	_, left, _ := p.switches.Left(s.template)
	return left
}

// wait ends a pass, and has the template looked at once the revision stands.
func (p wholly) wait(ctx context.Context, s *state) (loop.Next, error) {
	owner, switching, err := p.switching(ctx, s)
	if s.left = p.left(s); switching {
		s.awaits = true
		p.waiting.Add(owner, s.key, func() bool { _, switching, err := p.switching(ctx, s); return switching || err != nil })
	}
	return loop.Next{Done: switching}, err
}

func (p wholly) switching(ctx context.Context, s *state) (client.ObjectKey, bool, error) {
	if p.switches == nil {
		return client.ObjectKey{}, false, nil
	}
	if owner, _, stays := p.switches.Left(s.template); stays {
		return owner, true, nil
	}
	owner, err := p.owner(ctx, s.template)
	if err != nil {
		return client.ObjectKey{}, false, err
	}
	for _, of := range []inventory.Labelled{s.template, s.policy, s.from, owner} {
		if owner, switching := p.switches.Switching(of); switching {
			return owner, true, nil
		}
	}
	return client.ObjectKey{}, false, nil
}
