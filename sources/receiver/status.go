package receiver

import (
	"context"
	"fmt"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// report writes the result to the status if that changes it.
func (r *Reconciler) report(ctx context.Context, s *state, err error) error {
	before := s.object.DeepCopy()
	status := &s.object.Status
	if token, ok := meta.ReconcileAnnotationValue(s.object.Annotations); ok {
		status.LastHandledReconcileAt = token
	}
	set := func(kind string, is metav1.ConditionStatus, reason, message string) {
		fetching.Set(s.object, r.opts.Clock.Now(), kind, is, reason, message)
	}
	failure := loop.As(err, notificationv1.ValidationFailedReason)
	switch {
	case failure == nil:
		status.WebhookPath, status.ObservedGeneration = s.path, s.object.Generation
		set(meta.ReadyCondition, metav1.ConditionTrue, meta.SucceededReason, s.message())
		fetching.Drop(s.object, meta.ReconcilingCondition, meta.StalledCondition)
	case failure.Class == loop.ClassStalled:
		status.WebhookPath, status.ObservedGeneration = "", s.object.Generation
		set(meta.ReadyCondition, metav1.ConditionFalse, failure.Reason, failure.Error())
		set(meta.StalledCondition, metav1.ConditionTrue, failure.Reason, failure.Error())
		fetching.Drop(s.object, meta.ReconcilingCondition)
	default:
		status.WebhookPath = ""
		set(meta.ReadyCondition, metav1.ConditionFalse, failure.Reason, failure.Error())
		set(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, failure.Error())
		fetching.Drop(s.object, meta.StalledCondition)
	}
	if apiequality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	if err := r.hub.Status().Patch(ctx, s.object, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write status: %w", err))
	}
	return nil
}
