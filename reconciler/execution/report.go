package execution

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
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
		status.Applied = slices.DeleteFunc(slices.Clone(s.applied), func(r workv1alpha1.AppliedHash) bool { return r.Desired == "" })
	}
	status.ManifestStatuses = manifestStatuses(s)
	s.status = status
	return loop.Next{}, nil
}

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
	for i, err := range s.failed {
		if err == nil && s.applied[i].Desired != s.parsed[i].hash {
			return metav1.Condition{}, false
		}
		if err == nil {
			good++
		}
	}
	if good == len(s.failed) {
		return metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.WorkAppliedSuccessfulReason, Message: workv1alpha1.WorkAppliedSuccessfulMessage,
		}, true
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse,
		Reason:  workv1alpha1.WorkAppliedFailedReason,
		Message: fmt.Sprintf("Failed to apply all manifests (%d/%d): %s", good, len(s.failed), utilerrors.NewAggregate(s.failed).Error()),
	}, true
}

// manifestStatuses reports the objects that are there. Where that is not known,
// what was last reported stays.
func manifestStatuses(s *state) []workv1alpha1.ManifestStatus {
	var out []workv1alpha1.ManifestStatus
	for i, observed := range s.objects {
		id := s.parsed[i].identifier()
		if !s.known[i] && observed == nil {
			at := slices.IndexFunc(s.work.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return m.Identifier == id })
			if at >= 0 {
				out = append(out, s.work.Status.ManifestStatuses[at])
			}
			continue
		}
		if observed == nil || !observed.Managed || observed.Work != s.key {
			continue
		}
		out = append(out, workv1alpha1.ManifestStatus{Identifier: id, Status: observed.Status, Health: observed.Health})
	}
	return out
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
	patch, err := statusPatch(&s.work.Status, s.status)
	if err != nil {
		return loop.Next{}, fmt.Errorf("encode the status of work %s: %w", s.key, err)
	}
	if !urgent(&s.work.Status, s.status) {
		if hold := l.held.Hold(s.key, members.Hash(patch)); hold > 0 {
			return loop.Next{After: hold}, nil
		}
	}
	updated := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	if err := l.hub.Status().Patch(ctx, updated, client.RawPatch(types.MergePatchType, patch)); err != nil {
		if apierrors.IsNotFound(err) {
			return loop.Next{}, nil
		}
		return loop.Next{}, fmt.Errorf("write the status of work %s: %w", s.key, err)
	}
	l.wrote.Wrote(updated)
	l.settle(s.key)
	l.announce(s)
	return loop.Next{}, nil
}

// statusPatch returns the merge patch from one status of a Work to another. It
// looks at nothing else: a Work's manifests are large.
func statusPatch(was, is *workv1alpha1.WorkStatus) ([]byte, error) {
	return client.MergeFrom(&workv1alpha1.Work{Status: *was}).Data(&workv1alpha1.Work{Status: *is})
}

// urgent says whether somebody waits for the change: something fails or works
// again, or an object turned healthy or ceased to be. That a new object was
// sent and has yet to become healthy is no such news: most often the two are
// told in one write.
func urgent(was, is *workv1alpha1.WorkStatus) bool {
	before, now := conditionStatus(was, workv1alpha1.WorkApplied), conditionStatus(is, workv1alpha1.WorkApplied)
	if before != now && (before != "" || now != metav1.ConditionTrue) {
		return true
	}
	if len(is.ManifestStatuses) < len(was.ManifestStatuses) {
		return true
	}
	return slices.ContainsFunc(is.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool {
		at := slices.IndexFunc(was.ManifestStatuses, func(o workv1alpha1.ManifestStatus) bool { return o.Identifier == m.Identifier })
		if at < 0 {
			return m.Health == workv1alpha2.ResourceHealthy
		}
		return was.ManifestStatuses[at].Health != m.Health
	})
}

func conditionStatus(status *workv1alpha1.WorkStatus, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// announce emits an Event when a Work begins to fail.
func (l *lane) announce(s *state) {
	was, is := conditionStatus(&s.work.Status, workv1alpha1.WorkApplied), meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkApplied)
	if is != nil && is.Status == metav1.ConditionFalse && was != metav1.ConditionFalse {
		l.recorder.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonSyncWorkloadFailed, is.Message)
	}
}

// settle forgets what was to be written: the Work has it.
func (l *lane) settle(key client.ObjectKey) {
	l.held.Clear(key)
	l.ledger.settled(key)
}
