package decider

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
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

// Emit emits e on a template, and a failure on its binding, too; b may be nil where nothing failed.
func (e Event) Emit(to loop.Recorder, template runtime.Object, b workv1alpha2.Binding) {
	to.Event(template, e.Type, e.Reason, e.Message)
	if e.Type == corev1.EventTypeWarning && b != nil {
		to.Event(b, e.Type, e.Reason, e.Message)
	}
}

// EventsOf returns the Events that decision is worth, given what b recorded before.
func EventsOf(before workv1alpha2.Binding, decision placement.Decision) (out []Event) {
	for _, of := range []func(workv1alpha2.Binding, placement.Decision) (Event, bool){eventOf, evictionEventOf, moveEventOf} {
		if e, some := of(before, decision); some {
			out = append(out, e)
		}
	}
	return out
}

// evictionEventOf returns the Event that it is worth that a template should be moved and has
// no place to go to: when it is found, not each time that it is found again.
func evictionEventOf(before workv1alpha2.Binding, decision placement.Decision) (Event, bool) {
	was, _ := placement.RecordOf(before)
	if decision.Record.Stays == nil || decision.Record.EvictionReported.Equal(was.EvictionReported) {
		return Event{}, false
	}
	return Event{corev1.EventTypeWarning, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed, decision.Record.Stays.Message}, true
}

// moveEventOf returns the Event that it is worth that a template begins to leave clusters for a failover or a drain: the old copies, and
// with them the end, may take long. A policy that has it elsewhere is an edit of its owner, who knows.
func moveEventOf(before workv1alpha2.Binding, decision placement.Decision) (Event, bool) {
	was, _ := placement.RecordOf(before)
	move := decision.Record.LastMove
	takenOff := len(before.BindingSpec().Clusters) == 0 && len(before.BindingSpec().GracefulEvictionTasks) > 0
	if move == nil || len(decision.Evicts) == 0 && !takenOff || was.LastMove != nil && was.LastMove.At.Equal(&move.At) && slices.Equal(was.LastMove.From, move.From) {
		return Event{}, false
	}
	message := "Leaves " + strings.Join(move.From, ", ") + ": " + cmp.Or(move.Why, "nobody said why") + ". Result: " + placement.Text(decision.Clusters)
	return Event{corev1.EventTypeNormal, workv1alpha2.EventReasonScheduleBindingSucceed, message}, true
}

// eventOf returns the Event that decision is worth, given what b recorded before.
// Only a first placement, a new failure and its end are reported, and by moveEventOf what leaves a cluster.
func eventOf(before workv1alpha2.Binding, decision placement.Decision) (Event, bool) {
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
