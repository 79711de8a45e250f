package ocirepository

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/cosign"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/notation"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// refuseVerify returns an error for a spec by which nothing is verified, or less than somebody may think.
func refuseVerify(verify *sourcev1.OCIRepositoryVerification) error {
	switch {
	case verify == nil:
		return nil
	case verify.Provider == provenance.Notation:
		return refuseNotation(verify)
	case verify.Provider != provenance.Cosign && verify.Provider != "":
		return loop.Stalled(fetching.ReasonUnsupported, fmt.Errorf("spec.verify.provider %s is not supported: sign with cosign or notation, and name that", verify.Provider))
	default:
		return refuseCosign(verify)
	}
}

// trust reads the keys, or the trusted root, by which signatures count, if spec.verify asks for signatures.
func (r reader) trust(ctx context.Context, s *state) (loop.Next, error) {
	verify := s.object.Spec.Verify
	if verify == nil {
		return loop.Next{}, nil
	}
	identities, err := provenance.Matchers(verify.MatchOIDCIdentity)
	if err != nil {
		s.doubted = true
		return loop.Next{}, loop.Stalled(sourcev1.VerificationError, err)
	}
	ref, field, holds := verify.SecretRef, "spec.verify.secretRef", "the public keys whose signatures count"
	if verify.Provider == provenance.Notation {
		holds = notation.PolicyKey + " and the certificates of who may sign"
	}
	if ref == nil {
		ref, field, holds = verify.TrustedRootSecretRef, "spec.verify.trustedRootSecretRef", cosign.RootKey
	}
	key := client.ObjectKey{Namespace: s.key.Namespace, Name: ref.Name}
	var secret corev1.Secret
	err = r.hub.Get(ctx, key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		s.doubted = s.object.Generation != s.object.Status.ObservedGeneration // it may be another one than before
		return loop.Next{}, loop.Waiting(sourcev1.VerificationError, min(s.interval, fetching.Awaited), fmt.Errorf("the Secret %s of %s is not there: create it with %s", key, field, holds))
	case err != nil:
		return loop.Next{}, fmt.Errorf("read Secret %s: %w", key, err)
	}
	switch {
	case verify.Provider == provenance.Notation:
		s.trust, err = r.notation(ctx, s, secret.Data)
	case verify.SecretRef != nil:
		s.trust, err = ofCosign(cosign.ParseKeys(secret.Data))
	default:
		s.trust, err = ofCosign(cosign.ParseRoot(secret.Data, identities))
	}
	if s.doubted = !s.trust.Has(provenance.ArtifactKey(s.object)); err != nil {
		return loop.Next{}, s.untrusted(key, err)
	}
	return loop.Next{}, nil
}

// untrusted returns the error about a Secret that says of nobody that he may sign.
func (s *state) untrusted(key client.ObjectKey, err error) error {
	if errors.Is(err, cosign.ErrKeys) || errors.Is(err, notation.ErrTrust) {
		return loop.Waiting(sourcev1.VerificationError, s.interval, fmt.Errorf("Secret %s: %w", key, err))
	}
	return err
}

// trust is whose signatures count.
type trust interface {
	// Has reports whether a fingerprint is of what vouches.
	Has(fingerprint string) bool
	// signer returns who signed the target: the first signature that counts. Where none does, the error is about the first there is.
	// Errors: unverified.
	signer(ctx context.Context, s *state) (provenance.ArtifactSignature, error)
}

// unverified says why the target is not verified.
type unverified struct{ why string }

func (u unverified) Error() string { return u.why }

// cosigned is whose signatures of cosign count.
type cosigned struct{ *cosign.Trust }

func ofCosign(of *cosign.Trust, err error) (trust, error) { return cosigned{of}, err }

// verify finds out who signed what is about to be fetched.
func verify(ctx context.Context, s *state) (loop.Next, error) {
	if s.object.Spec.Verify == nil || s.current {
		return loop.Next{}, nil
	}
	who, err := s.trust.signer(ctx, s)
	var not unverified
	switch {
	case errors.As(err, &not):
		return loop.Next{}, s.refused(not.why)
	case err != nil:
		return loop.Next{}, s.classify(err)
	}
	recorded := map[string]string{}
	if provenance.RecordArtifact(recorded, &who); !(provenance.Demand{OCI: s.object.Spec.Verify}).Met(recorded) {
		return loop.Next{}, s.refused("it is signed by somebody whose name is too long to be recorded")
	}
	s.signed = &who
	return loop.Next{}, nil
}

func (c cosigned) signer(ctx context.Context, s *state) (provenance.ArtifactSignature, error) {
	var none provenance.ArtifactSignature
	var first error
	signatures := s.remote.Signatures(s.target.Digest)
	for _, form := range []struct {
		read  func(context.Context) ([]oci.Signature, error)
		judge func(oci.Signature) (provenance.ArtifactSignature, error)
	}{
		{signatures.Bundles, func(sig oci.Signature) (provenance.ArtifactSignature, error) {
			return c.Bundle(s.target.Digest, sig.Content)
		}},
		{signatures.Simple, func(sig oci.Signature) (provenance.ArtifactSignature, error) {
			return c.Simple(s.target.Digest, sig.Content, sig.Annotations)
		}},
	} {
		all, err := form.read(ctx)
		if err != nil {
			return none, err
		}
		for _, sig := range all {
			who, err := form.judge(sig)
			if err == nil {
				return who, nil
			}
			if first == nil {
				first = err
			}
		}
	}
	switch {
	case first == nil:
		return none, unverified{"it has no signature of cosign" + signatures.Unread()}
	case errors.Is(first, cosign.ErrNotVerified):
		return none, unverified{cosign.Why(first) + signatures.Unread()}
	}
	return none, first
}

// refused returns the error about an artifact that is not verified.
func (s *state) refused(why string) error {
	refusal := provenance.Refusal{Revision: s.target.Revision(), Why: why}
	return loop.Waiting(sourcev1.VerificationError, s.interval, errors.New(refusal.Message()))
}
