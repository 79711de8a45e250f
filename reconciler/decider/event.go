package decider

import (
	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Event is what is reported about a template.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is CamelCase and stable.
	Reason string
	// Message for users.
	Message string
}

// EvictionEventOf returns the Event that it is worth that a template should be moved and has
// no place to go to: when it is found, not each time that it is found again.
func EvictionEventOf(before workv1alpha2.Binding, decision placement.Decision) (Event, bool) {
	was, _ := placement.RecordOf(before)
	if decision.Record.Stays == nil || was.Stays != nil {
		return Event{}, false
	}
	return Event{corev1.EventTypeWarning, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed, decision.Record.Stays.Message}, true
}

// EventOf returns the Event that decision is worth, given what b said before.
// Only a first placement, a new failure and its end are reported.
func EventOf(before workv1alpha2.Binding, decision placement.Decision) (Event, bool) {
	was, decided := placement.RecordOf(before)
	if !decision.Record.Succeeded() {
		changed := !decided || was.Reason != decision.Record.Reason
		return Event{corev1.EventTypeWarning, workv1alpha2.EventReasonScheduleBindingFailed, decision.Record.Message}, changed
	}
	if !decided {
		// Placed by a scheduler that keeps no record.
		decided = before.GetAnnotations()[policyv1alpha1.PolicyPlacementAnnotation] != ""
		was.Reason = workv1alpha2.BindingReasonSuccess
	}
	message := decision.Record.Message + " Result: " + placement.Text(decision.Clusters)
	return Event{corev1.EventTypeNormal, workv1alpha2.EventReasonScheduleBindingSucceed, message}, !decided || !was.Succeeded()
}
