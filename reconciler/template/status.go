package template

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// readiness returns the condition Ready of a policy, and false while it is not
// known.
func readiness(policy policyv1alpha1.Policy, needs needs, skip propagation.SkipRules, state func(schema.GroupVersionKind) templatestore.State) (metav1.Condition, bool) {
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
		case templatestore.Unserved:
			return ready(metav1.ConditionFalse, policyv1alpha1.PolicyReasonUnknownAPI, fmt.Sprintf(
				"spec.resourceSelectors[%d]: the control plane does not serve kind %s of %s: install its CustomResourceDefinition, or correct the selector",
				i, selectors[i].Kind, selectors[i].APIVersion))
		case templatestore.Unwanted:
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

// carriesNothing is the prefix of the condition's message when a policy carries nothing.
const carriesNothing = "it carries nothing"

// remark is what a ready policy asks without effect.
type remark struct {
	// strangers are the clusters that it names and that do not exist.
	strangers []propagation.Stranger
	// untaken names the templates that it selects and could not claim; empty for none.
	untaken string
	// idle says that it carries no template, and misnamed is a text about the object that it may mean; empty for none.
	idle     bool
	misnamed string
}

// isIdle sets whether the policy carries no template, and asks for what it may mean if so.
func (r *remark) isIdle(is bool, misnamed func() string) {
	if r.idle, r.misnamed = is, ""; is {
		r.misnamed = misnamed()
	}
}

// remarks adds to the condition of a ready policy what it asks without effect.
// Any other condition stays as it is.
func remarks(ready metav1.Condition, r remark) metav1.Condition {
	idle := r.idle && r.untaken == "" // it selects something, although it could not claim it
	if ready.Status != metav1.ConditionTrue || (len(r.strangers) == 0 && r.untaken == "" && !idle) {
		return ready
	}
	var texts []string
	if idle {
		ready.Reason = policyv1alpha1.PolicyReasonNothingSelected
		texts = append(texts, carriesNothing+": "+cmp.Or(r.misnamed, "there is no object that its selectors mean, or another policy carries it"))
	}
	if len(r.strangers) > 0 {
		ready.Reason = policyv1alpha1.PolicyReasonUnknownCluster
		texts = append(texts, propagation.Naming(r.strangers))
	}
	if r.untaken != "" {
		ready.Reason = policyv1alpha1.PolicyReasonNotTakenUp
		texts = append([]string{r.untaken}, texts...)
	}
	ready.Message = strings.Join(texts, "; ")
	return ready
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
