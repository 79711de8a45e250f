package template

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/template/store"
)

// report writes the policy's status if it differs. While a kind is still being
// looked up nothing is written: its state brings the policy back.
func (p *policies) report(ctx context.Context, policy policyv1alpha1.Policy, missing []string) error {
	ready, known := readiness(policy, missing, p.opts.Skip, p.templates.State)
	if !known {
		return nil
	}
	ready.LastTransitionTime = metav1.NewTime(p.opts.Clock.Now())
	status := policy.PropagationStatus().DeepCopy()
	status.ObservedGeneration = policy.GetGeneration()
	meta.SetStatusCondition(&status.Conditions, ready)
	if equality.Semantic.DeepEqual(status, policy.PropagationStatus()) {
		return nil
	}
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode the status of policy %s: %w", propagation.RefOf(policy), err)
	}
	switch err := p.hub.Status().Patch(ctx, policy, client.RawPatch(types.MergePatchType, data)); {
	case err == nil:
		p.written.Wrote(policy)
	case !bindings.IsStale(err):
		return fmt.Errorf("write the status of policy %s: %w", propagation.RefOf(policy), err)
	}
	return nil
}

// readiness returns the condition Ready of a policy, and false while it cannot
// be told.
func readiness(policy policyv1alpha1.Policy, missing []string, skip propagation.SkipRules, state func(schema.GroupVersionKind) store.State) (metav1.Condition, bool) {
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
	case len(missing) > 0:
		return ready(metav1.ConditionFalse, policyv1alpha1.PolicyReasonWaitingForOverrides, fmt.Sprintf(
			"waiting for overrides named in spec.dependentOverrides: create %s", strings.Join(missing, ", ")))
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
