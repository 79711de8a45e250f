package template

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/template/store"
	"github.com/flotilla-io/flotilla/reconciler/template/tally"
)

// counted hears from the tally. What changed is written a little later, with
// what changes until then.
func (p *policies) counted(ref propagation.PolicyRef) {
	req := requestFor(ref)
	p.mu.Lock()
	_, waiting := p.due[req]
	if !waiting {
		p.due[req] = p.opts.Clock.Now().Add(p.opts.StatusEvery)
	}
	p.mu.Unlock()
	if !waiting {
		p.requests.AddAfter(req, p.opts.StatusEvery)
	}
}

// report writes the policy's status if it differs, and returns when to come
// back. While a kind is still being looked up, or listed, nothing is written: its
// state brings the policy back.
func (p *policies) report(ctx context.Context, req ctrl.Request, policy policyv1alpha1.Policy, needs needs) (time.Duration, error) {
	ready, known := readiness(policy, needs, p.opts.Skip, p.templates.State)
	if !known {
		return 0, nil
	}
	due := p.take(req)
	status := policy.PropagationStatus().DeepCopy()
	p.observe(status, policy, ready)
	urgent := !equality.Semantic.DeepEqual(status, policy.PropagationStatus())
	if p.complete(policy) {
		p.count(status, policy)
	}
	if equality.Semantic.DeepEqual(status, policy.PropagationStatus()) {
		return 0, nil
	}
	if !urgent {
		if wait := p.hold(req, due); wait > 0 {
			return wait, nil
		}
	}
	before := policy.DeepCopyObject().(client.Object)
	*policy.PropagationStatus() = *status
	switch err := p.hub.Status().Patch(ctx, policy, client.MergeFrom(before)); {
	case err == nil:
		p.written.Wrote(policy)
	case !bindings.IsStale(err):
		return 0, fmt.Errorf("write the status of policy %s: %w", propagation.RefOf(policy), err)
	}
	return 0, nil
}

// observe fills in what concerns the policy itself.
func (p *policies) observe(status *policyv1alpha1.PropagationStatus, policy policyv1alpha1.Policy, ready metav1.Condition) {
	now := metav1.NewTime(p.opts.Clock.Now().Truncate(time.Second))
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

// complete says whether all that policy may carry is known.
func (p *policies) complete(policy policyv1alpha1.Policy) bool {
	return p.counting() && !slices.ContainsFunc(p.kinds(policy), func(gvk schema.GroupVersionKind) bool {
		state := p.templates.State(gvk)
		return state != store.Synced && state != store.Unserved
	})
}

// count fills in what the policy carries.
func (p *policies) count(status *policyv1alpha1.PropagationStatus, policy policyv1alpha1.Policy) {
	count := p.tally.Of(propagation.RefOf(policy))
	status.Templates, status.Bindings, status.Placed = count.Templates, count.Bindings, count.Placed
	if count.Complete {
		status.LastProblem = tally.Last(status.LastProblem, count.Problems, p.opts.Clock.Now())
	}
}

// take returns when counts that have changed are due; zero if none have. What
// changes from now on is due by itself: it may come too late for this pass.
func (p *policies) take(req ctrl.Request) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.due[req]
	delete(p.due, req)
	return at
}

// hold returns for how long counts that are due at a time are held back; the
// caller comes back then.
func (p *policies) hold(req ctrl.Request, due time.Time) time.Duration {
	now := p.opts.Clock.Now()
	if due.IsZero() {
		due = now.Add(p.opts.StatusEvery)
	}
	wait := due.Sub(now)
	if wait > 0 {
		p.mu.Lock()
		p.due[req] = due
		p.mu.Unlock()
	}
	return wait
}

// readiness returns the condition Ready of a policy, and false while it cannot
// be told.
func readiness(policy policyv1alpha1.Policy, needs needs, skip propagation.SkipRules, state func(schema.GroupVersionKind) store.State) (metav1.Condition, bool) {
	ready := func(status metav1.ConditionStatus, reason, message string) (metav1.Condition, bool) {
		return metav1.Condition{
			Type:               policyv1alpha1.PolicyReady,
			Status:             status,
			ObservedGeneration: policy.GetGeneration(),
			Reason:             reason,
			Message:            message,
		}, true
	}
	selectors := policy.PropagationSpec().ResourceSelectors
	for i := range selectors {
		if why := unusable(&selectors[i], skip); why != "" {
			return ready(metav1.ConditionFalse, policyv1alpha1.PolicyReasonInvalidSelector, fmt.Sprintf("spec.resourceSelectors[%d]: %s", i, why))
		}
	}
	pending := false
	for i := range selectors {
		switch state(kindOf(&selectors[i])) {
		case store.Unserved:
			return ready(metav1.ConditionFalse, policyv1alpha1.PolicyReasonUnknownAPI, fmt.Sprintf(
				"spec.resourceSelectors[%d]: the control plane does not serve kind %s of %s: install its CustomResourceDefinition, or correct the selector",
				i, selectors[i].Kind, selectors[i].APIVersion))
		case store.Unwanted:
			pending = true
		}
	}
	switch {
	case pending:
		return metav1.Condition{}, false
	case needs.noClass:
		return ready(metav1.ConditionFalse, policyv1alpha1.PolicyReasonUnknownPriorityClass, propagation.NoPriorityClass(policy).Error())
	case len(needs.overrides) > 0:
		return ready(metav1.ConditionFalse, policyv1alpha1.PolicyReasonWaitingForOverrides, fmt.Sprintf(
			"waiting for overrides named in spec.dependentOverrides: create %s", strings.Join(needs.overrides, ", ")))
	default:
		return ready(metav1.ConditionTrue, policyv1alpha1.PolicyReasonMatched, "All selected kinds are served here.")
	}
}

// unusable returns why a selector can never select anything; empty if it can.
func unusable(s *policyv1alpha1.ResourceSelector, skip propagation.SkipRules) string {
	if _, err := schema.ParseGroupVersion(s.APIVersion); err != nil {
		return fmt.Sprintf("apiVersion %q is neither version nor group/version", s.APIVersion)
	}
	if !propagation.PropagatesKind(kindOf(s), skip) {
		return fmt.Sprintf("kind %s of %s is never propagated: select another kind", s.Kind, s.APIVersion)
	}
	if s.LabelSelector != nil {
		if _, err := metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
			return fmt.Sprintf("labelSelector cannot be read: %v", err)
		}
	}
	return ""
}
