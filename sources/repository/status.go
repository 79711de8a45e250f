package repository

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/annotation"
	"github.com/flotilla-io/flotilla/policies/inclusion"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// report writes the result to the status if that changes it, and records an Event
// for a transition.
func (r *Reconciler) report(ctx context.Context, s *state, err error) error {
	before := s.object.DeepCopy()
	status := &s.object.Status
	if token, ok := meta.ReconcileAnnotationValue(s.object.Annotations); ok {
		status.LastHandledReconcileAt = token
	}
	failure := loop.As(err, sourcev1.GitOperationFailedReason)
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

// setStored sets the conditions for an artifact that is stored and up to date.
func (r *Reconciler) setStored(s *state) {
	status := &s.object.Status
	if s.artifact != nil {
		status.Artifact = s.artifact
	}
	status.Artifact.URL = r.store.URL(status.Artifact.Path)
	status.ObservedGeneration = s.object.Generation
	status.ObservedIgnore = s.object.Spec.Ignore
	status.ObservedSparseCheckout = s.object.Spec.SparseCheckout
	status.ObservedRecurseSubmodules = s.object.Spec.RecurseSubmodules
	status.ObservedInclude = s.object.Spec.Include
	status.IncludedArtifacts = artifactsOf(s.included)
	if verified := s.verified(); verified != "" {
		r.set(s, sourcev1.SourceVerifiedCondition, metav1.ConditionTrue, meta.SucceededReason, verified)
	}
	message := fmt.Sprintf("stored artifact for revision '%s'", status.Artifact.Revision)
	if history := status.Artifact.Metadata[gitopsv1alpha1.HistoryKey]; history != "" {
		message += ": " + history
	}
	r.set(s, meta.ReadyCondition, metav1.ConditionTrue, meta.SucceededReason, message)
	r.set(s, sourcev1.ArtifactInStorageCondition, metav1.ConditionTrue, meta.SucceededReason, message)
	drop(s, sourcev1.FetchFailedCondition, sourcev1.StorageOperationFailedCondition, sourcev1.ArtifactOutdatedCondition,
		sourcev1.IncludeUnavailableCondition, meta.ReconcilingCondition, meta.StalledCondition)
}

// verified records how signatures were verified, and returns who signed; empty where nobody asks for that.
func (s *state) verified() string {
	verify := s.object.Spec.Verification
	if verify == nil {
		s.object.Status.SourceVerificationMode = nil
		drop(s, sourcev1.SourceVerifiedCondition)
		return ""
	}
	s.object.Status.SourceVerificationMode = ptr.To(verify.GetMode())
	return "verified: " + provenance.Text(s.object.Status.Artifact.Metadata)
}

// setFailed records an error. The artifact and its conditions stay, unless the
// store has lost the artifact.
func (r *Reconciler) setFailed(s *state, failure *loop.Error) {
	message := fetching.Stable(failure.Err.Error())
	r.set(s, meta.ReadyCondition, metav1.ConditionFalse, failure.Reason, message)
	failed := cmp.Or(s.fails, sourcev1.FetchFailedCondition)
	for _, other := range []string{sourcev1.FetchFailedCondition, sourcev1.StorageOperationFailedCondition, sourcev1.IncludeUnavailableCondition} {
		// While nobody looks at what is included, what was found out last stands.
		if other != failed && (other != sourcev1.IncludeUnavailableCondition || s.included != nil) {
			drop(s, other)
		}
	}
	switch {
	case failure.Reason == fetching.ReasonUnsupported, failure.Reason == annotation.ReasonInvalid, failure.Reason == lineage.ReasonRewritten, failure.Reason == lineage.ReasonUnknown:
		drop(s, failed)
	case failure.Reason == sourcev1.VerificationError && s.fails == "": // it was fetched
		drop(s, failed)
		r.set(s, sourcev1.SourceVerifiedCondition, metav1.ConditionFalse, failure.Reason, message)
	default:
		r.set(s, failed, metav1.ConditionTrue, failure.Reason, message)
	}
	if a := s.object.Status.Artifact; a != nil && s.doubted {
		a.Metadata = provenance.Withdrawn(a.Metadata)
		if failure.Reason != sourcev1.VerificationError || s.fails != "" {
			r.set(s, sourcev1.SourceVerifiedCondition, metav1.ConditionFalse, sourcev1.VerificationError, "no key of the Secret vouches for the artifact, and a newer one was not fetched")
		}
	}
	if s.object.Spec.Verification == nil {
		drop(s, sourcev1.SourceVerifiedCondition)
	}
	if failure.Class == loop.ClassStalled {
		s.object.Status.ObservedGeneration = s.object.Generation
		r.set(s, meta.StalledCondition, metav1.ConditionTrue, failure.Reason, message)
		drop(s, meta.ReconcilingCondition)
	} else {
		r.set(s, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, message)
		drop(s, meta.StalledCondition)
	}
	if a := s.object.Status.Artifact; a != nil && !r.store.Has(a.Digest) {
		drop(s, sourcev1.ArtifactInStorageCondition)
	}
}

func (r *Reconciler) set(s *state, kind string, status metav1.ConditionStatus, reason, message string) {
	fetching.Set(s.object, r.opts.Clock.Now(), kind, status, reason, message)
}

func drop(s *state, kinds ...string) { fetching.Drop(s.object, kinds...) }

// announce records an Event for what has changed for users, and logs new
// artifacts.
func (r *Reconciler) announce(ctx context.Context, before *sourcev1.GitRepository, s *state, failure *loop.Error) {
	if failure == nil && s.artifact != nil {
		ctrl.LoggerFrom(ctx).Info("stored artifact", "revision", s.artifact.Revision, "digest", s.artifact.Digest)
	}
	was, is := apimeta.FindStatusCondition(before.Status.Conditions, meta.ReadyCondition), apimeta.FindStatusCondition(s.object.Status.Conditions, meta.ReadyCondition)
	switch {
	case failure != nil:
		refused := provenance.Refused(s.object)
		if was == nil || was.Status != is.Status || was.Reason != is.Reason || refused.Revision != "" && refused != provenance.Refused(before) {
			r.events.Event(s.object, corev1.EventTypeWarning, is.Reason, is.Message)
		}
	case s.renewed(before):
		message := fmt.Sprintf("stored artifact for commit '%s' (%s)", s.subject, s.commit.Revision().Short())
		if old := before.Status.Artifact; old != nil && old.Revision == s.artifact.Revision {
			message += ", as " + cmp.Or(inclusion.Changed(before, s.object), "what belongs to it changed")
		}
		r.events.Event(s.object, corev1.EventTypeNormal, fetching.ReasonNewArtifact, message)
	case was != nil && was.Status == metav1.ConditionFalse:
		r.events.Event(s.object, corev1.EventTypeNormal, is.Reason, fetching.WorksAgain(s.object, s.object.Status.Artifact))
	}
	if failure == nil && s.artifact != nil && s.history.warns {
		r.events.Event(s.object, corev1.EventTypeWarning, lineage.ReasonRewritten, s.commit.Revision().Short()+": "+s.history.text)
	}
}

// renewed reports whether an artifact was stored that differs from the one before.
func (s *state) renewed(before *sourcev1.GitRepository) bool {
	old := before.Status.Artifact
	return s.artifact != nil && (old == nil || old.Revision != s.artifact.Revision || old.Digest != s.artifact.Digest)
}
