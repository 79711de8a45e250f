package ocirepository

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/annotation"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// Annotations of manifests that say what an artifact was made from.
const (
	sourceAnnotation   = "org.opencontainers.image.source"
	revisionAnnotation = "org.opencontainers.image.revision"
	wellKnown          = "org.opencontainers.image."
)

const (
	// maxAnnotation is how much of the value of an annotation is recorded, in runes.
	maxAnnotation = 1000
	// maxAnnotations is how much of all annotations is recorded, in bytes.
	maxAnnotations = 16 << 10
)

// metadata returns the annotations of a manifest as far as they are recorded with the artifact: those of the OCI first. Anybody may
// have written them, so that each is one line, and none says what only the control plane may say.
func metadata(annotations map[string]string) map[string]string {
	keys := slices.SortedFunc(maps.Keys(annotations), func(a, b string) int {
		if known := strings.HasPrefix(a, wellKnown); known != strings.HasPrefix(b, wellKnown) {
			if known {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	out, size := map[string]string{}, 0
	for _, key := range keys {
		value := excerpt.Runes(excerpt.Line(annotations[key]), maxAnnotation)
		if size += len(key) + len(value); size > maxAnnotations {
			break
		}
		if excerpt.Line(key) == key && value != "" && key != gitopsv1alpha1.HistoryKey && key != gitopsv1alpha1.SubmodulesKey && key != gitopsv1alpha1.SubmodulesLeftOutKey {
			out[key] = value
		}
	}
	return provenance.Withdrawn(out)
}

// report writes the result to the status if that changes it, and records an Event for a transition.
func (r *Reconciler) report(ctx context.Context, s *state, err error) error {
	before := s.object.DeepCopy()
	if token, ok := meta.ReconcileAnnotationValue(s.object.Annotations); ok {
		s.object.Status.LastHandledReconcileAt = token
	}
	failure := loop.As(err, sourcev1.OCIPullFailedReason)
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
	status.ObservedLayerSelector = s.object.Spec.LayerSelector
	if s.object.Spec.Verify != nil {
		r.set(s, sourcev1.SourceVerifiedCondition, metav1.ConditionTrue, meta.SucceededReason, "verified: "+provenance.Text(status.Artifact.Metadata))
	} else {
		fetching.Drop(s.object, sourcev1.SourceVerifiedCondition)
	}
	message := fmt.Sprintf("stored artifact for digest '%s'", status.Artifact.Revision)
	if history := status.Artifact.Metadata[gitopsv1alpha1.HistoryKey]; history != "" {
		message += ": " + history
	}
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
	switch failure.Reason {
	case fetching.ReasonUnsupported, annotation.ReasonInvalid, lineage.ReasonRewritten, lineage.ReasonUnknown:
		fetching.Drop(s.object, failed)
	case sourcev1.VerificationError: // the registry did deliver
		fetching.Drop(s.object, failed)
		r.set(s, sourcev1.SourceVerifiedCondition, metav1.ConditionFalse, failure.Reason, message)
	default:
		r.set(s, failed, metav1.ConditionTrue, failure.Reason, message)
	}
	if s.withdraw() && failure.Reason != sourcev1.VerificationError {
		r.set(s, sourcev1.SourceVerifiedCondition, metav1.ConditionFalse, sourcev1.VerificationError, "nobody who counts vouches for the artifact, and a newer one was not fetched")
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

// withdraw takes from the artifact what it says of a signer who does not count any more, and reports whether there is one.
func (s *state) withdraw() bool {
	if s.object.Spec.Verify == nil {
		fetching.Drop(s.object, sourcev1.SourceVerifiedCondition)
	}
	a := s.object.Status.Artifact
	if a == nil || !s.doubted {
		return false
	}
	a.Metadata = provenance.Withdrawn(a.Metadata)
	return true
}

// announce records an Event for what has changed for users, and logs new artifacts.
func (r *Reconciler) announce(ctx context.Context, before *sourcev1.OCIRepository, s *state, failure *loop.Error) {
	if failure == nil && s.artifact != nil {
		ctrl.LoggerFrom(ctx).Info("stored artifact", "revision", s.artifact.Revision, "digest", s.artifact.Digest)
	}
	was, is := apimeta.FindStatusCondition(before.Status.Conditions, meta.ReadyCondition), apimeta.FindStatusCondition(s.object.Status.Conditions, meta.ReadyCondition)
	switch {
	case failure != nil:
		refused := provenance.RefusedArtifact(s.object)
		if was == nil || was.Status != is.Status || was.Reason != is.Reason || refused.Revision != "" && refused != provenance.RefusedArtifact(before) {
			r.events.Event(s.object, corev1.EventTypeWarning, is.Reason, is.Message)
		}
	case s.renewed(before):
		r.events.Event(s.object, corev1.EventTypeNormal, fetching.ReasonNewArtifact, s.stored())
		if s.history != "" && before.Status.Artifact.Revision != s.artifact.Revision {
			r.events.Event(s.object, corev1.EventTypeWarning, lineage.ReasonRewritten, s.artifact.Revision+": "+s.history)
		}
	case was != nil && was.Status == metav1.ConditionFalse:
		r.events.Event(s.object, corev1.EventTypeNormal, is.Reason, fetching.WorksAgain(s.object, s.object.Status.Artifact))
	}
}

// renewed reports whether an artifact was stored that differs from the one before.
func (s *state) renewed(before *sourcev1.OCIRepository) bool {
	old := before.Status.Artifact
	return s.artifact != nil && (old == nil || old.Revision != s.artifact.Revision || old.Digest != s.artifact.Digest)
}

// stored says what was stored, and what that was made from.
func (s *state) stored() string {
	text := fmt.Sprintf("stored artifact with revision '%s' from '%s'", s.artifact.Revision, s.object.Spec.URL)
	source, revision := s.artifact.Metadata[sourceAnnotation], s.artifact.Metadata[revisionAnnotation]
	if source != "" && revision != "" {
		text += fmt.Sprintf(", origin source '%s', origin revision '%s'", source, revision)
	}
	return text
}
