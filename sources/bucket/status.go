package bucket

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// report writes the result to the status if that changes it, and records an Event for a transition.
func (r *Reconciler) report(ctx context.Context, s *state, err error) error {
	before := s.object.DeepCopy()
	if token, ok := meta.ReconcileAnnotationValue(s.object.Annotations); ok {
		s.object.Status.LastHandledReconcileAt = token
	}
	failure := loop.As(err, sourcev1.BucketOperationFailedReason)
	if failure == nil {
		r.setStored(s)
	} else {
		r.setFailed(s, failure)
	}
	if apiequality.Semantic.DeepEqual(before.Status, s.object.Status) {
		return nil
	}
	if err := r.hub.Status().Patch(ctx, s.object, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write status: %w", err))
	}
	r.announce(ctx, before, s, failure)
	return nil
}

func (r *Reconciler) set(s *state, kind string, status metav1.ConditionStatus, reason, message string) {
	fetching.Set(s.object, r.opts.Clock.Now(), kind, status, reason, message)
}

// setStored sets the conditions for an artifact that is stored and up to date.
func (r *Reconciler) setStored(s *state) {
	status := &s.object.Status
	if s.artifact != nil {
		status.Artifact = s.artifact
	}
	status.Artifact.URL = r.store.URL(status.Artifact.Path)
	status.ObservedGeneration = s.object.Generation
	status.ObservedIgnore = s.object.Spec.Ignore
	message := fmt.Sprintf("stored artifact: revision '%s'", status.Artifact.Revision)
	r.set(s, meta.ReadyCondition, metav1.ConditionTrue, meta.SucceededReason, message)
	r.set(s, sourcev1.ArtifactInStorageCondition, metav1.ConditionTrue, meta.SucceededReason, message)
	fetching.Drop(s.object, sourcev1.FetchFailedCondition, sourcev1.StorageOperationFailedCondition, sourcev1.ArtifactOutdatedCondition,
		meta.ReconcilingCondition, meta.StalledCondition)
}

// setFailed records an error. The artifact and its conditions stay, unless the store has lost the artifact.
func (r *Reconciler) setFailed(s *state, failure *loop.Error) {
	message := fetching.Stable(failure.Err.Error())
	r.set(s, meta.ReadyCondition, metav1.ConditionFalse, failure.Reason, message)
	failed, other := sourcev1.FetchFailedCondition, sourcev1.StorageOperationFailedCondition
	if s.storing {
		failed, other = other, failed
	}
	fetching.Drop(s.object, other)
	if failure.Reason == fetching.ReasonUnsupported {
		fetching.Drop(s.object, failed)
	} else {
		r.set(s, failed, metav1.ConditionTrue, failure.Reason, message)
	}
	if failure.Class == loop.ClassStalled {
		s.object.Status.ObservedGeneration = s.object.Generation
		r.set(s, meta.StalledCondition, metav1.ConditionTrue, failure.Reason, message)
		fetching.Drop(s.object, meta.ReconcilingCondition)
	} else {
		r.set(s, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, message)
		fetching.Drop(s.object, meta.StalledCondition)
	}
	if a := s.object.Status.Artifact; a != nil && !r.store.Has(a.Digest) {
		fetching.Drop(s.object, sourcev1.ArtifactInStorageCondition)
	}
}

// announce records an Event for what has changed for users, and logs new artifacts.
func (r *Reconciler) announce(ctx context.Context, before *sourcev1.Bucket, s *state, failure *loop.Error) {
	was, is := apimeta.FindStatusCondition(before.Status.Conditions, meta.ReadyCondition), apimeta.FindStatusCondition(s.object.Status.Conditions, meta.ReadyCondition)
	switch {
	case failure != nil:
		if was == nil || was.Status != is.Status || was.Reason != is.Reason {
			r.events.Event(s.object, corev1.EventTypeWarning, is.Reason, is.Message)
		}
	case s.artifact != nil:
		ctrl.LoggerFrom(ctx).Info("stored artifact", "revision", s.artifact.Revision, "digest", s.artifact.Digest, "fetched", s.fetched)
		if old := before.Status.Artifact; old == nil || old.Revision != s.artifact.Revision || old.Digest != s.artifact.Digest {
			r.events.Event(s.object, corev1.EventTypeNormal, fetching.ReasonNewArtifact,
				fmt.Sprintf("stored artifact with %d files from bucket '%s', %d of them fetched", len(s.objects), s.object.Spec.BucketName, s.fetched))
		}
	case was != nil && was.Status == metav1.ConditionFalse:
		r.events.Event(s.object, corev1.EventTypeNormal, is.Reason, is.Message)
	}
}
