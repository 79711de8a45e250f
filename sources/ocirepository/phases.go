package ocirepository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/policies/annotation"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/policies/unserved"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/cloudlogin"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// state is what the phases of a reconcile have found out about one source.
type state struct {
	object   *sourcev1.OCIRepository
	key      client.ObjectKey
	interval time.Duration
	remote   *oci.Remote
	target   oci.Target
	// cloud is what the login was asked for with, if it is one of a cloud.
	cloud *cloudlogin.Question
	// current means that the artifact of the target is stored already; inUse are older artifacts in use.
	current bool
	inUse   []artifact.Used
	// trust is whose signatures count, if the spec asks for signatures, and signed who signed what is fetched. doubted means
	// that the artifact of the status was not verified by such.
	trust   trust
	signed  *provenance.ArtifactSignature
	doubted bool
	// artifact is the new artifact; nil until it is stored.
	artifact *meta.Artifact
	// read is the manifest of the target, if it was read, and history what is to be said if it is older than the artifact.
	read    *read
	history string
	// storing means that the fault is one of our storage, not of the registry.
	storing bool
}

// outcome returns the metric's reason for a reconcile without an error.
func (s *state) outcome() string {
	if s.artifact != nil {
		return fetching.ReasonNewArtifact
	}
	return "UpToDate"
}

// refuse returns an error for fields that are not supported, rather than ignoring them.
func (c clouds) refuse(_ context.Context, s *state) (loop.Next, error) {
	spec := s.object.Spec
	if _, why := unserved.OCIRepository(spec, c.built); why != "" {
		return loop.Next{}, loop.Stalled(fetching.ReasonUnsupported, errors.New(why))
	}
	if err := annotation.OfRollback(s.object.Annotations); err != nil {
		return loop.Next{}, loop.Stalled(annotation.ReasonInvalid, err)
	}
	err := refuseVerify(spec.Verify)
	s.doubted = err != nil // by what cannot be verified nobody is vouched for
	return loop.Next{}, err
}

// limit refuses a source beyond its namespace's limit.
func (r *Reconciler) limit(ctx context.Context, s *state) (loop.Next, error) {
	return loop.Next{}, r.limits.Sources(ctx, s.object, s.interval)
}

// resolve asks the registry for the digest, and checks whether its artifact is stored.
func (r *Reconciler) resolve(ctx context.Context, s *state) (loop.Next, error) {
	var ref oci.Ref
	if of := s.object.Spec.Reference; of != nil {
		ref = oci.Ref{Tag: of.Tag, SemVer: of.SemVer, SemVerFilter: of.SemverFilter, Digest: of.Digest}
	}
	var err error
	if s.target, err = s.remote.Resolve(ctx, ref); err != nil {
		return loop.Next{}, s.classify(err)
	}
	have := s.object.Status.Artifact
	s.current = !s.doubted && have.HasRevision(s.target.Revision()) && sameSelection(s.object) && r.store.Owns(ownerOf(s.key), have.Digest) && r.store.Has(have.Digest)
	return loop.Next{}, nil
}

// sameSelection reports whether the artifact was made with the present rules of what belongs to it.
func sameSelection(object *sourcev1.OCIRepository) bool {
	spec, status := object.Spec, object.Status
	return ptr.Equal(spec.Ignore, status.ObservedIgnore) && ptr.Equal(spec.LayerSelector, status.ObservedLayerSelector)
}

// use finds the artifacts in use, in addition to the latest one.
func (r *Reconciler) use(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	s.inUse, err = r.opts.InUse(ctx, s.key)
	return loop.Next{}, err
}

// fetch transfers the layer and stores it, or the files in it, unless that is stored already.
func (r *Reconciler) fetch(ctx context.Context, s *state) (loop.Next, error) {
	if s.current {
		return loop.Next{}, nil
	}
	fits := func(size int64) error {
		return r.limits.Artifact(s.object, sourcev1.OCIRepositoryKind, s.inUse, s.interval, size)
	}
	// Where not even one byte fits into the limit, nothing is transferred.
	if err := fits(1); err != nil {
		return loop.Next{}, err
	}
	manifest, packed, err := s.transfer(ctx, s.target.Digest)
	if err != nil {
		return loop.Next{}, s.classify(err)
	}
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return loop.Next{}, err
	}
	defer leave()
	files, err := s.files(ctx, packed, r.opts.Limits)
	if err != nil {
		return loop.Next{}, s.classify(fmt.Errorf("files of %s: %w", s.target.Revision(), err))
	}
	var stored artifact.Stored
	if s.object.GetLayerOperation() == sourcev1.OCILayerCopy {
		stored, err = artifact.PutPacked(ctx, r.store, ownerOf(s.key), packed, fits, fetching.Digests(s.inUse)...)
	} else {
		stored, err = r.store.PutWithin(ctx, ownerOf(s.key), files, fits, fetching.Digests(s.inUse)...)
	}
	if fetching.IsLimit(err) {
		return loop.Next{}, err
	}
	if err != nil {
		s.storing = true
		return loop.Next{}, loop.Retry(sourcev1.ArchiveOperationFailedReason, err)
	}
	s.artifact = &meta.Artifact{
		Digest: stored.Digest, Path: stored.Path, URL: stored.URL, Size: ptr.To(stored.Size),
		Revision: s.target.Revision(), LastUpdateTime: metav1.NewTime(r.opts.Clock.Now()),
		Metadata: metadata(manifest.Annotations),
	}
	if s.history != "" {
		s.artifact.Metadata[gitopsv1alpha1.HistoryKey] = s.history
	}
	if s.signed != nil {
		provenance.RecordArtifact(s.artifact.Metadata, s.signed)
	}
	return loop.Next{}, nil
}

// transfer returns the manifest of a digest, and the bytes of the layer that is asked for.
func (s *state) transfer(ctx context.Context, digest string) (oci.Manifest, []byte, error) {
	manifest, err := s.manifest(ctx, digest)
	if err != nil {
		return oci.Manifest{}, nil, err
	}
	layer, err := manifest.Layer(s.object.GetLayerMediaType())
	if err != nil {
		return oci.Manifest{}, nil, err
	}
	packed, err := s.remote.Layer(ctx, layer)
	return manifest, packed, err
}

// files returns the files in a layer that belong to the artifact.
func (s *state) files(ctx context.Context, packed []byte, limits artifact.Limits) (artifact.Files, error) {
	if s.object.GetLayerOperation() == sourcev1.OCILayerCopy {
		files, err := artifact.Extract(bytes.NewReader(packed), limits) // what is kept as it is has to be readable as it is
		if err != nil {
			return nil, err
		}
		return files, files.CheckTwins()
	}
	files, _, err := artifact.ExtractWithoutLinks(bytes.NewReader(packed), limits)
	if err != nil {
		return nil, err
	}
	return files.Select(ctx, artifact.Selection{Ignore: s.object.Spec.Ignore}, limits)
}

// restore fetches an artifact again that is in use and missing.
func (r *Reconciler) restore(ctx context.Context, s *state, used artifact.Used) error {
	target, err := oci.ParseRevision(used.Revision)
	if err != nil {
		return err
	}
	_, packed, err := s.transfer(ctx, target.Digest)
	if err != nil {
		return err
	}
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return err
	}
	defer leave()
	files, err := s.files(ctx, packed, r.opts.Limits)
	if err != nil {
		return err
	}
	if s.object.GetLayerOperation() == sourcev1.OCILayerCopy {
		return artifact.RestorePacked(ctx, r.store, ownerOf(s.key), used.Digest, packed)
	}
	return r.store.Restore(ctx, ownerOf(s.key), used.Digest, files)
}

// classify returns the error with what is to be done about it: what only a change of the object can fix stalls; what a change
// elsewhere fixes is tried again after the interval; what may be transient is tried again soon.
func (s *state) classify(err error) error {
	if ref := s.object.Spec.ProxySecretRef; ref != nil {
		err = egress.Naming(err, s.object.Namespace+"/"+ref.Name)
	}
	waits := func(reason string) error { return loop.Waiting(reason, s.interval, err) }
	switch {
	case errors.Is(err, egress.ErrNotAllowed):
		return loop.Stalled(fetching.ReasonAddress, err)
	case errors.Is(err, oci.ErrURL), errors.Is(err, cloudlogin.ErrHost):
		return loop.Stalled(sourcev1.URLInvalidReason, err)
	case errors.Is(err, oci.ErrRef):
		return loop.Stalled(sourcev1.OCIPullFailedReason, err)
	case errors.Is(err, oci.ErrCredentials), errors.Is(err, oci.ErrUnauthorized), errors.Is(err, egress.ErrProxyUnauthorized),
		errors.Is(err, cloudlogin.ErrCredentials), errors.Is(err, cloudlogin.ErrRefused):
		return waits(sourcev1.AuthenticationFailedReason)
	case errors.Is(err, oci.ErrLayer), errors.Is(err, artifact.ErrTooLarge), errors.Is(err, artifact.ErrMalformed):
		return waits(sourcev1.OCILayerOperationFailedReason)
	case errors.Is(err, oci.ErrNotFound), errors.Is(err, oci.ErrRedirect), errors.Is(err, oci.ErrTLS), errors.Is(err, oci.ErrTooLarge), errors.Is(err, oci.ErrMalformed):
		return waits(sourcev1.OCIPullFailedReason)
	default:
		return loop.Retry(sourcev1.OCIPullFailedReason, err)
	}
}
