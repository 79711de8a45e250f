package template

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/template/reach"
	"github.com/flotilla-io/flotilla/reconciler/template/statistics"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// reporter writes the status of policies: whether they can act, and what they
// carry.
type reporter struct {
	hub     client.Client
	state   func(schema.GroupVersionKind) templatestore.State
	reach   reach.Finder
	again   func(req ctrl.Request, after time.Duration)
	written *writecache.Cache[policyv1alpha1.Policy]
	opts    Options

	statistics *statistics.Policies
	// counting reports whether all bindings were counted.
	counting func() bool
	mu       sync.Mutex
	due      map[ctrl.Request]time.Time // when counts that changed are written
}

func newReporter(hub client.Client, templates *templatestore.Store, written *writecache.Cache[policyv1alpha1.Policy], again func(ctrl.Request, time.Duration), opts Options) *reporter {
	r := &reporter{
		hub:      hub,
		state:    templates.State,
		reach:    reach.Finder{Hub: hub, Templates: templates},
		again:    again,
		written:  written,
		opts:     opts,
		counting: func() bool { return true },
		due:      map[ctrl.Request]time.Time{},
	}
	r.statistics = statistics.New(r.counted)
	return r
}

// counted is called by the statistics. The change is written a little later, together with
// further changes until then.
func (r *reporter) counted(ref propagation.PolicyRef) {
	req := requestFor(ref)
	r.mu.Lock()
	_, waiting := r.due[req]
	if !waiting {
		r.due[req] = r.opts.Clock.Now().Add(r.opts.StatusEvery)
	}
	r.mu.Unlock()
	if !waiting {
		r.again(req, r.opts.StatusEvery)
	}
}

// run writes the policy's status if it differs, and returns the pause until the next
// pass; zero for none. While a kind is still being looked up, or listed, it writes nothing: a change of the
// kind's state enqueues the policy.
func (r *reporter) run(ctx context.Context, req ctrl.Request, policy policyv1alpha1.Policy, needs needs) (time.Duration, error) {
	ready, tellable := readiness(policy, needs, r.opts.Skip, r.state)
	if !tellable {
		return 0, nil
	}
	due := r.take(req)
	status := policy.PropagationStatus().DeepCopy()
	observed := remark{strangers: needs.strangers}
	observed.isIdle(idle(status), func() string { return r.reach.Misnamed(ctx, policy) })
	untaken, known := r.untaken(policy, needs)
	if reportedNotTakenUp(policy) {
		observed.untaken = untaken
	}
	r.observe(status, policy, remarks(ready, observed))
	urgent := !equality.Semantic.DeepEqual(status, policy.PropagationStatus())
	var again time.Duration
	if r.complete(policy) {
		r.count(status, policy)
		switch none := status.Templates == 0; {
		case !urgent:
			observed.untaken = untaken
			observed.isIdle(none, func() string { return r.reach.Misnamed(ctx, policy) })
			r.observe(status, policy, remarks(ready, observed))
		case none && !idle(status), untaken != observed.untaken: // templates that it selects may be about to be claimed
			again = r.delay(req, time.Time{})
		}
	}
	if equality.Semantic.DeepEqual(status, policy.PropagationStatus()) {
		if !r.counting() || !known {
			return r.opts.StatusEvery, nil
		}
		return 0, nil
	}
	if !urgent {
		if wait := r.delay(req, due); wait > 0 {
			return wait, nil
		}
	}
	return again, r.write(ctx, policy, status)
}

// write replaces the status of policy.
func (r *reporter) write(ctx context.Context, policy policyv1alpha1.Policy, status *policyv1alpha1.PropagationStatus) error {
	before := policy.DeepCopyObject().(client.Object)
	*policy.PropagationStatus() = *status
	switch err := r.hub.Status().Patch(ctx, policy, client.MergeFrom(before)); {
	case err == nil:
		r.written.Wrote(policy)
	case !bindings.IsStale(err):
		return fmt.Errorf("write the status of policy %s: %w", propagation.RefOf(policy), err)
	}
	return nil
}

// idle reports whether a status shows that its policy carries nothing.
func idle(status *policyv1alpha1.PropagationStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, policyv1alpha1.PolicyReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && strings.HasPrefix(ready.Message, carriesNothing)
}

// reportedNotTakenUp reports whether a policy's status shows that it could not claim something.
func reportedNotTakenUp(policy policyv1alpha1.Policy) bool {
	before := meta.FindStatusCondition(policy.PropagationStatus().Conditions, policyv1alpha1.PolicyReady)
	return before != nil && before.Reason == policyv1alpha1.PolicyReasonNotTakenUp
}

// untaken returns a text about what policy could not claim. Right after a start, while that is not known,
// it is the text in the status; known is false then, and the policy has to be reconciled again.
func (r *reporter) untaken(policy policyv1alpha1.Policy, needs needs) (text string, known bool) {
	untaken, all := r.statistics.Untaken(propagation.RefOf(policy))
	if !reportedNotTakenUp(policy) || all && r.complete(policy) {
		return statistics.Naming(untaken), true
	}
	before := meta.FindStatusCondition(policy.PropagationStatus().Conditions, policyv1alpha1.PolicyReady)
	return strings.TrimSuffix(before.Message, "; "+propagation.Naming(needs.strangers)), false
}

// observe sets the parts of the status that concern the policy itself.
func (r *reporter) observe(status *policyv1alpha1.PropagationStatus, policy policyv1alpha1.Policy, ready metav1.Condition) {
	now := metav1.NewTime(r.opts.Clock.Now().Truncate(time.Second))
	ready.LastTransitionTime = now
	meta.SetStatusCondition(&status.Conditions, ready)
	lazy := policy.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
	switch {
	case !lazy || policy.GetGeneration() < 2:
		status.ObservedTime = nil
	case status.ObservedGeneration != policy.GetGeneration() || status.ObservedTime == nil:
		status.ObservedTime = &now
	}
	status.ObservedGeneration = policy.GetGeneration()
}

// complete reports whether all templates of the kinds that policy selects, and all bindings, are known.
func (r *reporter) complete(policy policyv1alpha1.Policy) bool {
	return r.counting() && !slices.ContainsFunc(kindsOf(policy, r.opts.Skip), func(gvk schema.GroupVersionKind) bool {
		state := r.state(gvk)
		return state != templatestore.Synced && state != templatestore.Unserved
	})
}

// count sets the counts of what the policy carries.
func (r *reporter) count(status *policyv1alpha1.PropagationStatus, policy policyv1alpha1.Policy) {
	count := r.statistics.Of(propagation.RefOf(policy))
	status.Templates, status.Bindings, status.Placed = count.Templates, count.Bindings, count.Placed
	if count.Complete {
		status.LastProblem = statistics.Last(status.LastProblem, count.Problems, r.opts.Clock.Now())
	}
}

// take returns when counts that have changed are due; zero if none have. Later
// changes get a time of their own, as they may come too late for this pass.
func (r *reporter) take(req ctrl.Request) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.due[req]
	delete(r.due, req)
	return at
}

// delay returns how long the write of counts that are due at a time is delayed; the
// caller requeues the policy for then.
func (r *reporter) delay(req ctrl.Request, due time.Time) time.Duration {
	now := r.opts.Clock.Now()
	if due.IsZero() {
		due = now.Add(r.opts.StatusEvery)
	}
	wait := due.Sub(now)
	if wait > 0 {
		r.mu.Lock()
		r.due[req] = due
		r.mu.Unlock()
	}
	return wait
}

// forget drops what is known of a policy that is gone.
func (r *reporter) forget(req ctrl.Request) {
	r.mu.Lock()
	delete(r.due, req)
	r.mu.Unlock()
}

// countBindings feeds the bindings in the cache to the statistics.
func (r *reporter) countBindings(ctx context.Context, hub cache.Cache) error {
	var followed []toolscache.ResourceEventHandlerRegistration
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		informer, err := hub.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("count bindings: %w", err)
		}
		registration, err := informer.AddEventHandler(r.bindingCounts())
		if err != nil {
			return fmt.Errorf("count bindings: %w", err)
		}
		followed = append(followed, registration)
	}
	r.counting = func() bool {
		return !slices.ContainsFunc(followed, func(f toolscache.ResourceEventHandlerRegistration) bool { return !f.HasSynced() })
	}
	return nil
}

func (r *reporter) bindingCounts() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			if b, ok := obj.(workv1alpha2.Binding); ok {
				r.statistics.Binding(b, first, r.opts.Clock.Now())
			}
		},
		UpdateFunc: func(old, obj any) {
			before, _ := old.(workv1alpha2.Binding)
			after, ok := obj.(workv1alpha2.Binding)
			if !ok || before == nil {
				return
			}
			if bindings.TemplateOf(before) != bindings.TemplateOf(after) {
				r.statistics.Unbound(before)
			}
			r.statistics.Binding(after, false, r.opts.Clock.Now())
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if b, ok := obj.(workv1alpha2.Binding); ok {
				r.statistics.Unbound(b)
			}
		},
	}
}
