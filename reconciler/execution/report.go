package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/cascadeguard"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// reporter writes the statuses of Works. It is the only one in this package that does.
type reporter struct {
	hub       client.StatusClient
	wrote     *writecache.Cache[*workv1alpha1.Work]
	delayed   *debounce.Debouncer[client.ObjectKey]
	records   memory
	finalizer departureRecorder
	events    loop.Recorder
	clock     clock.PassiveClock
	announced *cascadeguard.Announced
}

// departureRecorder deletes a Work whose binding is being deleted, so that the Work has a deletion timestamp, which
// people see.
type departureRecorder interface {
	Delete(ctx context.Context, work *workv1alpha1.Work) error
}

// report writes the result of a pass: the new status, or why a Work that is being deleted is blocked.
func (r *reporter) report(ctx context.Context, s *state) (loop.Next, error) {
	r.reportKept(s)
	switch {
	case s.stays != nil:
		return loop.Next{}, r.reportStay(ctx, s)
	case s.status != nil:
		return r.reportStatus(ctx, s)
	}
	return loop.Next{}, nil
}

// reportKept emits an event for each claim that a Work leaves in its cluster, on the Work and the template.
func (r *reporter) reportKept(s *state) {
	for i := range s.kept {
		m := &s.kept[i]
		message := excerpt.Message(volumes.Kept(m.Title(), s.cluster.Name), mostEvent)
		r.events.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonClaimKept, message)
		if template := m.Template(s.work); template != nil {
			r.events.Event(template, corev1.EventTypeWarning, workv1alpha1.EventReasonClaimKept, message)
		}
	}
}

// reportStatus writes the status: at once if the change is urgent, otherwise after it has
// not changed for a moment, and not at all if it is the same.
func (r *reporter) reportStatus(ctx context.Context, s *state) (loop.Next, error) {
	if members.Same(&s.work.Status, s.status) {
		r.forget(s.key)
		return loop.Next{}, nil
	}
	patch, err := hub.ReplaceStatus(s.work.UID, s.status)
	if err != nil {
		return loop.Next{}, fmt.Errorf("work %s: %w", s.key, err)
	}
	if !urgent(&s.work.Status, s.status) {
		if wait := r.delayed.Delay(s.key, members.Hash(patch)); wait > 0 {
			return loop.Next{After: wait}, nil
		}
	}
	switch err := r.write(ctx, s.key, patch); {
	case hub.Gone(err): // deleted, or created again: the watch reports that
		return loop.Next{}, nil
	case errors.Is(err, hub.ErrAway) && s.problem() == nil: // Proven requeues the Work when the hub is back
		return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: backoff.LastRetry, Err: err}
	case errors.Is(err, hub.ErrAway): // the problem has its own retry, which must not be delayed by the hub
		return loop.Next{}, nil
	case err != nil:
		return loop.Next{}, fmt.Errorf("write the status of work %s: %w", s.key, err)
	}
	r.forget(s.key)
	announce(r.events, s)
	return loop.Next{}, nil
}

// reportStay writes into the status of a Work why it is not removed, once for each reason, and emits an event once.
func (r *reporter) reportStay(ctx context.Context, s *state) error {
	status, known := cascadeguard.Status(s.work, s.stays.why, r.clock.Now())
	away := false
	if !known {
		patch, err := hub.ReplaceStatus(s.work.UID, status)
		if err != nil {
			return fmt.Errorf("work %s: %w", s.key, err)
		}
		err = r.write(ctx, s.key, patch)
		if away = errors.Is(err, hub.ErrAway) || hub.Gone(err); err != nil && !away {
			return fmt.Errorf("write the status of work %s: %w", s.key, err)
		}
	}
	if !away && r.announced.Due(s.work, s.stays.why, r.clock.Now()) { // else a later pass may report it
		text := egress.Message(s.stays.why)
		log.FromContext(ctx).Info("Work cannot be removed", "reason", text)
		r.events.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonDeletionBlocked, excerpt.Message(text, mostEvent))
	}
	if !s.stays.deletes {
		return nil
	}
	return r.finalizer.Delete(ctx, s.work)
}

// write replaces the status of a Work, if it still has the UID in the patch.
func (r *reporter) write(ctx context.Context, key client.ObjectKey, patch []byte) error {
	updated := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := r.hub.Status().Patch(ctx, updated, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return err
	}
	r.wrote.Wrote(updated)
	return nil
}

// forget drops the delayed write and the pending records of a Work, as its status has them.
func (r *reporter) forget(key client.ObjectKey) {
	r.delayed.Forget(key)
	r.records.Forget(key)
}

// urgent reports whether a change must not wait: something fails or works again, or an object became
// healthy or unhealthy. That a new object was sent and is not healthy yet is not urgent: most often its
// health follows in a moment, and both are written at once.
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

// announce emits an event when a Work, or a rule for its objects, begins to fail.
func announce(to loop.Recorder, s *state) {
	if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkInterpreted); c != nil && conditionStatus(&s.work.Status, workv1alpha1.WorkInterpreted) == "" {
		to.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonInterpreterFailed, excerpt.Message(c.Message, mostEvent))
	}
	was, is := conditionStatus(&s.work.Status, workv1alpha1.WorkApplied), meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkApplied)
	if is != nil && is.Status == metav1.ConditionFalse && was != metav1.ConditionFalse {
		to.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonSyncWorkloadFailed, excerpt.Message(is.Message, mostEvent))
	}
}

// mostEvent is how many bytes of a message fit into an event.
const mostEvent = 1024
