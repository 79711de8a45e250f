package receiver

import (
	"context"
	"fmt"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// report writes the result to the status if that changes it.
func (r *Reconciler) report(ctx context.Context, s *state, err error) error {
	before := s.object.DeepCopy()
	status := &s.object.Status
	if token, ok := meta.ReconcileAnnotationValue(s.object.Annotations); ok {
		status.LastHandledReconcileAt = token
	}
	failure := loop.As(err, notificationv1.ValidationFailedReason)
	switch {
	case failure == nil:
		status.WebhookPath, status.ObservedGeneration = s.path, s.object.Generation
		r.set(s, meta.ReadyCondition, metav1.ConditionTrue, meta.SucceededReason, s.message())
		drop(status, meta.ReconcilingCondition, meta.StalledCondition)
	case failure.Class == loop.ClassStalled:
		status.WebhookPath, status.ObservedGeneration = "", s.object.Generation
		r.set(s, meta.ReadyCondition, metav1.ConditionFalse, failure.Reason, failure.Error())
		r.set(s, meta.StalledCondition, metav1.ConditionTrue, failure.Reason, failure.Error())
		drop(status, meta.ReconcilingCondition)
	default:
		status.WebhookPath = ""
		r.set(s, meta.ReadyCondition, metav1.ConditionFalse, failure.Reason, failure.Error())
		r.set(s, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, failure.Error())
		drop(status, meta.StalledCondition)
	}
	if apiequality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	if err := r.hub.Status().Patch(ctx, s.object, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write status: %w", err))
	}
	return nil
}

func (r *Reconciler) set(s *state, kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&s.object.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.object.Generation, LastTransitionTime: metav1.NewTime(r.opts.Clock.Now()),
	})
}

func drop(status *notificationv1.ReceiverStatus, kinds ...string) {
	for _, kind := range kinds {
		apimeta.RemoveStatusCondition(&status.Conditions, kind)
	}
}
