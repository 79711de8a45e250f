package externalartifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/download"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// Reasons of Events about artifacts that are not fetched.
const (
	// reasonFetch means that the server did not deliver.
	reasonFetch = "FetchFailed"
	// reasonArtifact means that what the status names is no artifact that is taken.
	reasonArtifact = "InvalidArtifact"
)

// state is what the phases of a reconcile have found out about one source, which has an artifact.
type state struct {
	object *sourcev1.ExternalArtifact
	key    client.ObjectKey
	// current means that the artifact is stored already; inUse are older artifacts in use.
	current bool
	inUse   []artifact.Used
}

// outcome returns the metric's reason for a reconcile without an error.
func (s *state) outcome() string {
	if s.current {
		return "UpToDate"
	}
	return fetching.ReasonNewArtifact
}

// limit refuses a source beyond its namespace's limit.
func (r *Reconciler) limit(ctx context.Context, s *state) (loop.Next, error) {
	return loop.Next{}, r.limits.Sources(ctx, s.object, interval)
}

// find looks whether the store has the artifact.
func (r *Reconciler) find(_ context.Context, s *state) (loop.Next, error) {
	digest := s.object.Status.Artifact.Digest
	s.current = r.store.Owns(ownerOf(s.key), digest) && r.store.Has(digest)
	return loop.Next{}, nil
}

// use finds the artifacts in use, in addition to the latest one.
func (r *Reconciler) use(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	s.inUse, err = r.opts.InUse(ctx, s.key)
	return loop.Next{}, err
}

// fetch transfers the artifact and stores it, unless it is stored already.
func (r *Reconciler) fetch(ctx context.Context, s *state) (loop.Next, error) {
	if s.current {
		return loop.Next{}, nil
	}
	of := s.object.Status.Artifact
	if !strings.HasPrefix(of.Digest, "sha256:") {
		return loop.Next{}, loop.Waiting(reasonArtifact, interval, errors.New("its digest is not of SHA-256: have who makes it use that"))
	}
	fits := func(size int64) error {
		return r.limits.Artifact(s.object, sourcev1.ExternalArtifactKind, s.inUse, interval, size)
	}
	// Where not even one byte fits into the limit, nothing is transferred.
	if err := fits(1); err != nil {
		return loop.Next{}, err
	}
	packed, err := r.files.Get(ctx, of.URL)
	if err != nil {
		return loop.Next{}, classify(err)
	}
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return loop.Next{}, err
	}
	defer leave()
	if artifact.DigestOf(packed) != of.Digest {
		return loop.Next{}, loop.Retry(reasonFetch, errors.New("what its URL has is of another digest than the status says")) // it may be about to change
	}
	files, err := artifact.Extract(bytes.NewReader(packed), r.opts.Limits)
	if err == nil {
		err = files.CheckTwins()
	}
	if err != nil {
		return loop.Next{}, loop.Waiting(reasonArtifact, interval, err)
	}
	_, err = artifact.PutPacked(ctx, r.store, ownerOf(s.key), packed, fits, fetching.Digests(s.inUse)...)
	if err != nil && !fetching.IsLimit(err) {
		return loop.Next{}, loop.Retry(sourcev1.ArchiveOperationFailedReason, err)
	}
	return loop.Next{}, err
}

// classify returns the error with what is to be done about it.
func classify(err error) error {
	switch {
	case errors.Is(err, egress.ErrNotAllowed):
		return loop.Waiting(fetching.ReasonAddress, fetching.LastRetry, err)
	case errors.Is(err, download.ErrURL), errors.Is(err, download.ErrTooLarge):
		return loop.Waiting(reasonArtifact, interval, err)
	case errors.Is(err, download.ErrRefused), errors.Is(err, egress.ErrRedirect):
		return loop.Waiting(reasonFetch, interval, err)
	default:
		return loop.Retry(reasonFetch, err)
	}
}

// said returns what this loop says of an object.
func said(of *sourcev1.ExternalArtifact) string {
	return of.Annotations[gitopsv1alpha1.FetchedAnnotation]
}

// mostText bounds the text of a fault, in runes.
const mostText = 1000

// report writes the annotation if that changes it, and records an Event for a transition.
func (r *Reconciler) report(ctx context.Context, s *state, err error) error {
	of := s.object.Status.Artifact
	was, is := said(s.object), of.Digest
	failure := loop.As(err, reasonFetch)
	if failure != nil {
		is += ": " + excerpt.Runes(excerpt.Line(fetching.Stable(failure.Err.Error())), mostText)
	}
	if was == is {
		return nil
	}
	before := s.object.DeepCopy()
	if s.object.Annotations == nil {
		s.object.Annotations = map[string]string{}
	}
	s.object.Annotations[gitopsv1alpha1.FetchedAnnotation] = is
	if err := r.hub.Patch(ctx, s.object, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write what was fetched: %w", err))
	}
	switch {
	case failure != nil:
		r.events.Event(s.object, corev1.EventTypeWarning, failure.Reason, excerpt.Runes(excerpt.Line(failure.Err.Error()), mostText))
	case !s.current:
		ctrl.LoggerFrom(ctx).Info("stored artifact", "revision", of.Revision, "digest", of.Digest)
		r.events.Event(s.object, corev1.EventTypeNormal, fetching.ReasonNewArtifact, "fetched artifact of revision '"+of.Revision+"'")
	}
	return nil
}
