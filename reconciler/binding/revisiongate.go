package binding

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// revisionGate keeps half of a revision out of Works. While a Kustomization switches to another revision, the
// bindings of templates that it changed wait. Once it has switched, the bindings that its overrides touch are
// reconciled, each as soon as its placement is that of the new revision. See docs/design/0009.
type revisionGate struct {
	switches  *revisiongate.Tracker
	undecided func(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool
	waiting   *revisiongate.Waiting[ctrl.Request]
	again     func(ctrl.Request)

	mu sync.Mutex
	// touched are the bindings whose overrides change with a switch, and the Kustomization that switches.
	touched map[ctrl.Request]client.ObjectKey
	// begun are the bindings of Kustomizations that have had a pass since the loop began. The first pass
	// has to wait for a decision: overrides that are read at a start may be of a later revision than the binding.
	begun map[ctrl.Request]bool
	// undecidedSince is since when a new decision on a binding is due.
	undecidedSince map[ctrl.Request]time.Time
	clock          clock.PassiveClock
}

// longestUndecided is the longest wait for a decision that is due and does not come.
const longestUndecided = 10 * time.Second

func newRevisionGate(switches *revisiongate.Tracker, opts Options, again func(ctrl.Request)) *revisionGate {
	return &revisionGate{
		switches: switches, undecided: opts.Undecided, waiting: revisiongate.NewWaiting(switches, again), again: again, clock: opts.Clock,
		touched: map[ctrl.Request]client.ObjectKey{}, begun: map[ctrl.Request]bool{}, undecidedSince: map[ctrl.Request]time.Time{},
	}
}

// switchEnding is the Ending of a revisiongate.Listener.
func (g *revisionGate) switchEnding(ctx context.Context, touched func(context.Context, ...policyv1alpha1.Override) map[ctrl.Request]bool) func(client.ObjectKey, ...policyv1alpha1.Override) {
	return func(owner client.ObjectKey, versions ...policyv1alpha1.Override) {
		found := touched(ctx, versions...)
		g.mu.Lock()
		defer g.mu.Unlock()
		for req := range found {
			g.touched[req] = owner
		}
	}
}

// switchEnded is the Ended of a revisiongate.Listener.
func (g *revisionGate) switchEnded(owner client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for req, by := range g.touched {
		if by == owner {
			g.again(req)
		}
	}
}

// awaitRevision holds a template of a revision that is half written, and ends the pass for one whose binding has yet to
// get the placement of the present revision.
func (g *revisionGate) awaitRevision(ctx context.Context, s *state) (loop.Next, error) {
	req := ctrl.Request{NamespacedName: s.key}
	if owner, switching := g.switches.Switching(s.template); switching {
		stands, err := standsFor(s.binding, s.template)
		if err != nil {
			return loop.Next{}, err
		}
		if !stands {
			template := s.template
			g.waiting.Add(owner, req, func() bool { _, switching := g.switches.Switching(template); return switching })
			s.held = true
			return loop.Next{}, nil
		}
	}
	g.mu.Lock()
	owner, touched := g.touched[req]
	g.mu.Unlock()
	if !touched || g.switches.IsSwitching(owner) {
		return loop.Next{}, nil
	}
	if g.awaitsDecision(ctx, s) {
		return loop.Next{Done: true, After: time.Second}, nil // the event of the decision enqueues it earlier
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.touched[req] == owner {
		delete(g.touched, req)
	}
	return loop.Next{}, nil
}

// awaitsDecision reports whether the placement of a binding is about to change. After longestUndecided it
// returns false, even if the change has not come.
func (g *revisionGate) awaitsDecision(ctx context.Context, s *state) bool {
	req, now := ctrl.Request{NamespacedName: s.key}, g.clock.Now()
	undecided := g.undecided(ctx, s.template.DeepCopy(), s.binding)
	g.mu.Lock()
	defer g.mu.Unlock()
	since, before := g.undecidedSince[req]
	switch {
	case undecided && !before:
		g.undecidedSince[req] = now
		return true
	case undecided && now.Sub(since) < longestUndecided:
		return true
	default:
		delete(g.undecidedSince, req)
		return false
	}
}

// ignoreStalePrune ignores that a binding is pruned from clusters if its template is in the revision again: the template
// loop is about to remove that from the binding.
func (g *revisionGate) ignoreStalePrune(_ context.Context, s *state) (loop.Next, error) {
	if _, left, _ := g.switches.Left(s.template); left || len(plan.PrunedFrom(s.binding)) == 0 {
		return loop.Next{}, nil
	}
	s.binding = s.binding.DeepCopyObject().(workv1alpha2.Binding)
	plan.SetPrunedFrom(s.binding, nil)
	return loop.Next{After: time.Second}, nil
}

// standsFor reports whether a binding was decided for the template as it is now.
func standsFor(b workv1alpha2.Binding, template *unstructured.Unstructured) (bool, error) {
	if b.GetAnnotations()[propagation.DigestAnnotation] == "" {
		return false, nil
	}
	return described(b, template)
}

// overrides returns the overrides that apply to the template. It ends the pass while that is not known, as they are
// being switched, and until the placement is of the same revision as they are.
func (g *revisionGate) overrides(ctx context.Context, s *state) (found []policyv1alpha1.Override, next loop.Next) {
	resource, req := selector.ResourceOf(s.template), ctrl.Request{NamespacedName: s.key}
	found, owner, known := g.switches.Overrides(resource)
	if !known {
		g.waiting.Add(owner, req, func() bool { _, _, known := g.switches.Overrides(resource); return !known })
		return nil, loop.Next{Done: true}
	}
	g.mu.Lock()
	begun := g.begun[req]
	g.mu.Unlock()
	if begun || !fromGit(s.template, found) {
		return found, loop.Next{}
	}
	if g.awaitsDecision(ctx, s) {
		return nil, loop.Next{Done: true, After: time.Second} // the event of the decision enqueues it earlier
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun[req] = true
	return found, loop.Next{}
}

// fromGit reports whether a Kustomization applied a template, or one of the overrides for it.
func fromGit(template *unstructured.Unstructured, overrides []policyv1alpha1.Override) bool {
	_, owned := inventory.OwnerOf(template)
	return owned || slices.ContainsFunc(overrides, func(o policyv1alpha1.Override) bool { _, owned := inventory.OwnerOf(o); return owned })
}

// forget drops what is kept for a binding that is gone.
func (g *revisionGate) forget(key client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.touched, ctrl.Request{NamespacedName: key})
	delete(g.begun, ctrl.Request{NamespacedName: key})
	delete(g.undecidedSince, ctrl.Request{NamespacedName: key})
}
