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
	"github.com/flotilla-io/flotilla/reconciler/switching"
)

// wholly keeps what is half written out of Works. While a Kustomization is switched, what it changed waits;
// once it is, what its overrides touch is looked at, each when its binding says where it goes by then.
type wholly struct {
	switches  *switching.Tracker
	undecided func(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool
	waiting   *switching.Waiting[ctrl.Request]
	again     func(ctrl.Request)

	mu sync.Mutex
	// touched are bindings whose overrides count otherwise once a Kustomization is switched.
	touched map[ctrl.Request]client.ObjectKey
	// begun are the bindings that were looked at, of those that Kustomizations have a say in: what
	// counted when the loop began may be of a later revision than the binding.
	begun map[ctrl.Request]bool
	// doubts are the bindings that were about to be decided otherwise, since when.
	doubts map[ctrl.Request]time.Time
	clock  clock.PassiveClock
}

// longestDoubt is how long a binding is waited for that is about to be decided otherwise, and is not.
const longestDoubt = 10 * time.Second

func newWholly(switches *switching.Tracker, opts Options, again func(ctrl.Request)) *wholly {
	return &wholly{
		switches: switches, undecided: opts.Undecided, waiting: switching.NewWaiting(switches, again), again: again, clock: opts.Clock,
		touched: map[ctrl.Request]client.ObjectKey{}, begun: map[ctrl.Request]bool{}, doubts: map[ctrl.Request]time.Time{},
	}
}

// ending is a switching.Listener's.
func (w *wholly) ending(ctx context.Context, touched func(context.Context, ...policyv1alpha1.Override) map[ctrl.Request]bool) func(client.ObjectKey, ...policyv1alpha1.Override) {
	return func(owner client.ObjectKey, versions ...policyv1alpha1.Override) {
		found := touched(ctx, versions...)
		w.mu.Lock()
		defer w.mu.Unlock()
		for req := range found {
			w.touched[req] = owner
		}
	}
}

// ended is a switching.Listener's.
func (w *wholly) ended(owner client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for req, by := range w.touched {
		if by == owner {
			w.again(req)
		}
	}
}

// wait ends the pass for a template that is half written, and for one whose binding does not say yet
// where it goes by the revision that counts now.
func (w *wholly) wait(ctx context.Context, s *state) (loop.Next, error) {
	req := ctrl.Request{NamespacedName: s.key}
	if owner, switching := w.switches.Switching(s.template); switching {
		stands, err := standsFor(s.binding, s.template)
		if err != nil {
			return loop.Next{}, err
		}
		if !stands {
			w.waiting.Add(owner, req, func() bool { return w.switches.IsSwitching(owner) })
			return loop.Next{Done: true}, nil
		}
	}
	w.mu.Lock()
	owner, touched := w.touched[req]
	w.mu.Unlock()
	if !touched || w.switches.IsSwitching(owner) {
		return loop.Next{}, nil
	}
	if w.doubted(ctx, s) {
		return loop.Next{Done: true, After: time.Second}, nil // the binding's event brings it back before
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.touched[req] == owner {
		delete(w.touched, req)
	}
	return loop.Next{}, nil
}

// doubted reports whether a binding is about to say otherwise where its template goes. One that does not come
// to it is taken at its word after a while.
func (w *wholly) doubted(ctx context.Context, s *state) bool {
	req, now := ctrl.Request{NamespacedName: s.key}, w.clock.Now()
	undecided := w.undecided(ctx, s.template.DeepCopy(), s.binding)
	w.mu.Lock()
	defer w.mu.Unlock()
	since, before := w.doubts[req]
	switch {
	case undecided && !before:
		w.doubts[req] = now
		return true
	case undecided && now.Sub(since) < longestDoubt:
		return true
	default:
		delete(w.doubts, req)
		return false
	}
}

// left takes a binding for pruned from no cluster whose template has not left its revision: whoever decides where that
// goes is about to say so.
func (w *wholly) left(_ context.Context, s *state) (loop.Next, error) {
	if _, left, _ := w.switches.Left(s.template); left || len(plan.PrunedFrom(s.binding)) == 0 {
		return loop.Next{}, nil
	}
	s.binding = s.binding.DeepCopyObject().(workv1alpha2.Binding)
	plan.SetPrunedFrom(s.binding, nil)
	return loop.Next{After: time.Second}, nil
}

// standsFor reports whether a binding says that it is for the template as it is.
func standsFor(b workv1alpha2.Binding, template *unstructured.Unstructured) (bool, error) {
	if b.GetAnnotations()[propagation.DigestAnnotation] == "" {
		return false, nil
	}
	return described(b, template)
}

// overrides returns those that count for the template, or ends the pass: they are not known while it is being
// switched, and do not matter until the binding says where the template goes by the revision that they are of.
func (w *wholly) overrides(ctx context.Context, s *state) (found []policyv1alpha1.Override, next loop.Next) {
	resource, req := selector.ResourceOf(s.template), ctrl.Request{NamespacedName: s.key}
	found, owner, known := w.switches.Overrides(resource)
	if !known {
		w.waiting.Add(owner, req, func() bool { _, _, known := w.switches.Overrides(resource); return !known })
		return nil, loop.Next{Done: true}
	}
	w.mu.Lock()
	begun := w.begun[req]
	w.mu.Unlock()
	if begun || !fromGit(s.template, found) {
		return found, loop.Next{}
	}
	if w.doubted(ctx, s) {
		return nil, loop.Next{Done: true, After: time.Second} // the binding's event brings it back before
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun[req] = true
	return found, loop.Next{}
}

// fromGit reports whether a Kustomization applied a template, or one of the overrides for it.
func fromGit(template *unstructured.Unstructured, overrides []policyv1alpha1.Override) bool {
	_, owned := inventory.OwnerOf(template)
	return owned || slices.ContainsFunc(overrides, func(o policyv1alpha1.Override) bool { _, owned := inventory.OwnerOf(o); return owned })
}

// forget drops what is known of a binding that is gone.
func (w *wholly) forget(key client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.touched, ctrl.Request{NamespacedName: key})
	delete(w.begun, ctrl.Request{NamespacedName: key})
	delete(w.doubts, ctrl.Request{NamespacedName: key})
}
