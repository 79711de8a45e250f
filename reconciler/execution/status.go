package execution

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/statusbudget"
	"github.com/flotilla-io/flotilla/reconciler/execution/symptoms"
)

// describer computes the statuses of Works. It writes none.
type describer struct {
	clock    clock.PassiveClock
	records  sealed
	symptoms *symptoms.Symptoms
}

// sealed turns records into what is written into a Work's status.
type sealed interface {
	Sealed(applied []workv1alpha1.AppliedHash) []workv1alpha1.AppliedHash
}

// computeStatus computes the status of the Work. It asks the member for the Pods of a workload that does not become ready.
func (d *describer) computeStatus(ctx context.Context, s *state) (loop.Next, error) {
	status := s.work.Status.DeepCopy()
	now := metav1.NewTime(d.clock.Now())
	set := func(c metav1.Condition) {
		c.ObservedGeneration, c.LastTransitionTime = s.work.Generation, now
		meta.SetStatusCondition(&status.Conditions, c)
	}
	set(dispatching(s.work))
	if suspended(s.work) {
		if condition, ok := stands(s, status); ok {
			set(condition)
		}
	} else {
		if condition, ok := applied(s); ok {
			set(condition)
		}
		status.Applied = d.records.Sealed(s.records())
	}
	drifted(s, status, set)
	if s.work.DeletionTimestamp.IsZero() { // the condition is only for Works that are being deleted
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkDeletionBlocked)
	}
	manifests, left := manifestStatuses(s)
	if message, certain := ruleFaults(s, left); message != "" {
		set(metav1.Condition{
			Type: workv1alpha1.WorkInterpreted, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkInterpreterFailedReason, Message: message,
		})
	} else if certain {
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkInterpreted)
	}
	status.ManifestStatuses = manifests
	s.status = status
	return loop.Next{After: d.symptoms.Report(ctx, s.member, s.work, s.reported(), status)}, nil
}

// stands returns the condition Applied for the present generation of a suspended Work, if its manifests are those that
// were applied before: nothing is kept from the member. Else it returns false, and Applied stays as it was.
func stands(s *state, status *workv1alpha1.WorkStatus) (metav1.Condition, bool) {
	was := meta.FindStatusCondition(status.Conditions, workv1alpha1.WorkApplied)
	if was == nil || was.Status != metav1.ConditionTrue || slices.ContainsFunc(s.objects, func(o object) bool { return o.record.Desired != o.Hash }) {
		return metav1.Condition{}, false
	}
	return *was, true
}

// ruleFaults returns a message about the rules that fail for objects of the Work, and about the objects
// in left, whose statuses were left out. certain is false while the outcome of a rule is not
// known.
func ruleFaults(s *state, left []string) (message string, certain bool) {
	var all []string
	certain = true
	for _, title := range left {
		all = append(all, title+": its status is too large to be kept beside what the Work holds")
	}
	for i := range s.objects {
		o := &s.objects[i]
		var unruled *retention.Fault
		switch {
		case errors.As(o.failed, &unruled):
			all = append(all, unruled.Error())
		case o.observed == nil || !s.owner().Has(o.observed):
			certain = certain && o.known
		case o.observed.Pending:
			certain = false
		case o.observed.Fault != "":
			all = append(all, o.Title()+": "+o.observed.Fault)
		}
	}
	return excerpt.Message(strings.Join(all, "; "), mostMessage), certain
}

// drifted sets the condition Drifted. The last correction stays in
// the status; a report about an object that does not differ any more is removed.
func drifted(s *state, status *workv1alpha1.WorkStatus, set func(metav1.Condition)) {
	var texts []string
	open := false
	for _, d := range s.drifts() {
		if d != nil {
			texts = append(texts, d.Text)
			open = open || !d.Reverted
		}
	}
	message := excerpt.Message(strings.Join(texts, "; "), mostMessage)
	switch was := conditionStatus(status, workv1alpha1.WorkDrifted); {
	case open:
		set(metav1.Condition{Type: workv1alpha1.WorkDrifted, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkDriftReportedReason, Message: message})
	case len(texts) > 0:
		set(metav1.Condition{Type: workv1alpha1.WorkDrifted, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkDriftRevertedReason, Message: message})
	case was == metav1.ConditionTrue:
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkDrifted)
	}
}

// mostMessage is how many bytes of a message are kept in a condition. Errors of members may
// be of any length.
const mostMessage = 4096

func dispatching(work *workv1alpha1.Work) metav1.Condition {
	if suspended(work) {
		return metav1.Condition{
			Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionFalse,
			Reason: workv1alpha1.WorkSuspendDispatchingReason, Message: workv1alpha1.WorkSuspendDispatchingMessage,
		}
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.WorkDispatchingReason, Message: workv1alpha1.WorkDispatchingMessage,
	}
}

// applied returns the condition Applied for all manifests. It returns false, and the condition stays as it is, while a
// manifest has neither been sent nor failed.
func applied(s *state) (metav1.Condition, bool) {
	good := 0
	message := workv1alpha1.WorkAppliedSuccessfulMessage
	for i := range s.objects {
		o := &s.objects[i]
		if skiperrors.IsAsItIs(o.failed) {
			message += "; " + o.failed.Error()
			good++
			continue
		}
		if o.failed == nil && o.record.Desired != o.Hash {
			return metav1.Condition{}, false
		}
		if o.failed == nil {
			good++
		}
	}
	if s.stuck != nil {
		return metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkAppliedFailedReason,
			Message: excerpt.Message("Failed to "+egress.Message(s.stuck), mostMessage),
		}, true
	}
	if good == len(s.objects) {
		return metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.WorkAppliedSuccessfulReason, Message: excerpt.Message(message, mostMessage),
		}, true
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse,
		Reason: impersonation.Reason(s.failed()), Message: excerpt.Message(skiperrors.Text(s.failed()), mostMessage),
	}, true
}

// manifestStatuses returns the entries for the objects that exist. For an object of which that is not known,
// the last entry stays. left names the objects whose statuses do not
// fit.
func manifestStatuses(s *state) (out []workv1alpha1.ManifestStatus, left []string) {
	free := statusbudget.OfStatuses(s.work)
	for i := range s.objects {
		observed, id := s.objects[i].observed, s.objects[i].Identifier()
		if !s.objects[i].known && observed == nil || observed != nil && observed.Pending {
			at := slices.IndexFunc(s.work.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return m.Identifier == id })
			if at >= 0 {
				out = append(out, s.work.Status.ManifestStatuses[at])
			}
			continue
		}
		if observed == nil || !s.owner().Has(observed) {
			continue
		}
		status := observed.Status
		if status != nil {
			if size := rollup.Stored(status.Raw); size <= free {
				free -= size
			} else {
				status, left = nil, append(left, s.objects[i].Title())
			}
		}
		out = append(out, workv1alpha1.ManifestStatus{Identifier: id, Status: status, Health: observed.Health})
	}
	for i := range s.left { // listed until they are gone, behind the objects of manifests
		out = append(out, workv1alpha1.ManifestStatus{Identifier: s.left[i].Identifier(), Health: workv1alpha1.ResourceUnknown})
	}
	return out, left
}
