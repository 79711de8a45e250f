package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/execution/acting"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// describe works out the status of the Work.
func (l *lane) describe(_ context.Context, s *state) (loop.Next, error) {
	status := s.work.Status.DeepCopy()
	now := metav1.NewTime(l.options.Clock.Now())
	set := func(c metav1.Condition) {
		c.ObservedGeneration, c.LastTransitionTime = s.work.Generation, now
		meta.SetStatusCondition(&status.Conditions, c)
	}
	set(dispatching(s.work))
	if !suspended(s.work) {
		if condition, ok := applied(s); ok {
			set(condition)
		}
		drifted(s, status, set)
		status.Applied = l.options.Seal.Closed(slices.DeleteFunc(slices.Clone(s.applied), func(r workv1alpha1.AppliedHash) bool { return r.Desired == "" }))
	}
	said, left := manifestStatuses(s)
	if message, certain := faults(s, left); message != "" {
		set(metav1.Condition{
			Type: workv1alpha1.WorkInterpreted, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkInterpreterFailedReason, Message: message,
		})
	} else if certain {
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkInterpreted)
	}
	status.ManifestStatuses = said
	s.status = status
	return loop.Next{}, nil
}

// faults names the rules that fail for objects of the Work, and those objects
// whose statuses were left out, and reports whether all rules are known to have been
// asked.
func faults(s *state, left []string) (message string, certain bool) {
	var all []string
	certain = true
	for _, title := range left {
		all = append(all, title+": its status is too large to be kept beside what the Work holds")
	}
	for i, observed := range s.objects {
		var unruled *retention.Fault
		switch {
		case errors.As(s.failed[i], &unruled):
			all = append(all, unruled.Error())
		case observed == nil || !s.has(observed):
			certain = certain && s.known[i]
		case observed.Pending:
			certain = false
		case observed.Fault != "":
			all = append(all, s.parsed[i].title()+": "+observed.Fault)
		}
	}
	return excerpt.Bytes(strings.Join(all, "; "), mostMessage), certain
}

// drifted says what somebody did to the objects. What was put back last stays in
// the status; what is no longer different goes from there.
func drifted(s *state, status *workv1alpha1.WorkStatus, set func(metav1.Condition)) {
	var texts []string
	open := false
	for _, d := range s.drifts {
		if d != nil {
			texts = append(texts, d.text)
			open = open || !d.reverted
		}
	}
	message := excerpt.Bytes(strings.Join(texts, "; "), mostMessage)
	switch was := conditionStatus(status, workv1alpha1.WorkDrifted); {
	case open:
		set(metav1.Condition{Type: workv1alpha1.WorkDrifted, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkDriftReportedReason, Message: message})
	case len(texts) > 0:
		set(metav1.Condition{Type: workv1alpha1.WorkDrifted, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkDriftRevertedReason, Message: message})
	case was == metav1.ConditionTrue:
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkDrifted)
	}
}

// mostMessage is how many bytes of a message are kept in a condition. Members may
// answer with any number of them.
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

// applied judges the manifests. While one that was never sent waits for its
// predecessor to vanish there is nothing to say.
func applied(s *state) (metav1.Condition, bool) {
	good := 0
	message := workv1alpha1.WorkAppliedSuccessfulMessage
	for i, err := range s.failed {
		if outcome.IsAsItIs(err) {
			message += "; " + err.Error()
			good++
			continue
		}
		if err == nil && s.applied[i].Desired != s.parsed[i].hash {
			return metav1.Condition{}, false
		}
		if err == nil {
			good++
		}
	}
	if s.stuck != nil {
		return metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkAppliedFailedReason,
			Message: excerpt.Bytes("Failed to "+egress.Told(s.stuck), mostMessage),
		}, true
	}
	if good == len(s.failed) {
		return metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.WorkAppliedSuccessfulReason, Message: excerpt.Bytes(message, mostMessage),
		}, true
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse,
		Reason:  acting.Reason(s.failed),
		Message: excerpt.Bytes(fmt.Sprintf("Failed to apply all manifests (%d/%d): %s", good, len(s.failed), egress.Told(utilerrors.NewAggregate(slices.DeleteFunc(slices.Clone(s.failed), outcome.IsAsItIs)))), mostMessage),
	}, true
}

// manifestStatuses reports the objects that are there. Where that is not known,
// what was last reported stays. Left names the objects whose statuses there is no
// room for.
func manifestStatuses(s *state) (out []workv1alpha1.ManifestStatus, left []string) {
	free := room(s.work)
	for i, observed := range s.objects {
		id := s.parsed[i].identifier()
		if !s.known[i] && observed == nil || observed != nil && observed.Pending {
			at := slices.IndexFunc(s.work.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return m.Identifier == id })
			if at >= 0 {
				out = append(out, s.work.Status.ManifestStatuses[at])
			}
			continue
		}
		if observed == nil || !s.has(observed) {
			continue
		}
		status := observed.Status
		if status != nil {
			if size := rollup.Stored(status.Raw); size <= free {
				free -= size
			} else {
				status, left = nil, append(left, s.parsed[i].title())
			}
		}
		out = append(out, workv1alpha1.ManifestStatus{Identifier: id, Status: status, Health: observed.Health})
	}
	for i := range s.left { // remembered until they are gone, behind all that is asked for
		out = append(out, workv1alpha1.ManifestStatus{Identifier: s.left[i].identifier(), Health: workv1alpha1.ResourceUnknown})
	}
	return out, left
}

// Bounds of a Work in bytes as it is stored. etcd takes 1.5 MiB unless told
// otherwise; of more the hub would refuse to store any status at all.
const (
	mostWork = 1<<20 + 448<<10
	// mostStatuses bounds the statuses of all objects of a Work, and leastStatuses
	// is what there is room for in any case.
	mostStatuses  = 768 << 10
	leastStatuses = 32 << 10
)

// room returns how many bytes the statuses of a Work's objects may have together.
func room(work *workv1alpha1.Work) int {
	free := mostWork
	for i := range work.Spec.Workload.Manifests {
		free -= rollup.Stored(work.Spec.Workload.Manifests[i].Raw)
	}
	return max(leastStatuses, min(free, mostStatuses))
}

func (m *manifest) identifier() workv1alpha1.ResourceIdentifier {
	return workv1alpha1.ResourceIdentifier{
		Ordinal:   m.ordinal,
		Group:     m.gvk.Group,
		Version:   m.gvk.Version,
		Kind:      m.gvk.Kind,
		Namespace: m.key.Namespace,
		Name:      m.key.Name,
	}
}

// report writes the status: at once if somebody waits for it, else after it has
// been quiet for a moment, and not at all if it is what it was.
func (l *lane) report(ctx context.Context, s *state) (loop.Next, error) {
	if members.Same(&s.work.Status, s.status) {
		l.settle(s.key)
		return loop.Next{}, nil
	}
	patch, err := hub.ReplaceStatus(s.work.UID, s.status)
	if err != nil {
		return loop.Next{}, fmt.Errorf("work %s: %w", s.key, err)
	}
	if !urgent(&s.work.Status, s.status) {
		if hold := l.delayed.Delay(s.key, members.Hash(patch)); hold > 0 {
			return loop.Next{After: hold}, nil
		}
	}
	updated := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	if err := l.hub.Status().Patch(ctx, updated, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		if hub.Gone(err) { // gone, or another one by now, whose own event comes
			return loop.Next{}, nil
		}
		if errors.Is(err, hub.ErrAway) && s.problem() == nil { // who knows when it is back says so
			return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: backoff.LastRetry, Err: err}
		}
		if errors.Is(err, hub.ErrAway) { // the member is asked again as soon as ever
			return loop.Next{}, nil
		}
		return loop.Next{}, fmt.Errorf("write the status of work %s: %w", s.key, err)
	}
	l.wrote.Wrote(updated)
	l.settle(s.key)
	announce(l.recorder, s)
	return loop.Next{}, nil
}

// urgent reports whether somebody waits for the change: something fails or works
// again, or an object turned healthy or ceased to be. That a new object was
// sent and has yet to become healthy is no such news: most often the two are
// told in one write.
func urgent(was, is *workv1alpha1.WorkStatus) bool {
	for _, kind := range []string{workv1alpha1.WorkDrifted, workv1alpha1.WorkInterpreted} {
		if conditionStatus(was, kind) != conditionStatus(is, kind) {
			return true
		}
	}
	before, now := conditionStatus(was, workv1alpha1.WorkApplied), conditionStatus(is, workv1alpha1.WorkApplied)
	if before != now && (before != "" || now != metav1.ConditionTrue) {
		return true
	}
	if len(is.ManifestStatuses) < len(was.ManifestStatuses) {
		return true
	}
	return slices.ContainsFunc(is.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool {
		at := slices.IndexFunc(was.ManifestStatuses, func(o workv1alpha1.ManifestStatus) bool { return o.Identifier == m.Identifier })
		health := rollup.Shown(m.Health, m.Status)
		if at < 0 {
			return health == workv1alpha2.ResourceHealthy
		}
		before := was.ManifestStatuses[at]
		return before.Health != m.Health || rollup.Shown(before.Health, before.Status) != health
	})
}

func conditionStatus(status *workv1alpha1.WorkStatus, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// announce emits an Event when a Work, or a rule for its objects, begins to fail.
func announce(to loop.Recorder, s *state) {
	if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkInterpreted); c != nil && conditionStatus(&s.work.Status, workv1alpha1.WorkInterpreted) == "" {
		to.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonInterpreterFailed, excerpt.Bytes(c.Message, mostEvent))
	}
	was, is := conditionStatus(&s.work.Status, workv1alpha1.WorkApplied), meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkApplied)
	if is != nil && is.Status == metav1.ConditionFalse && was != metav1.ConditionFalse {
		to.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonSyncWorkloadFailed, excerpt.Bytes(is.Message, mostEvent))
	}
}

// settle forgets what was to be written: the Work has it.
func (l *lane) settle(key client.ObjectKey) {
	l.delayed.Forget(key)
	l.applied.settled(key)
}
