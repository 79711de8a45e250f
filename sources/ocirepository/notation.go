package ocirepository

import (
	"context"
	"errors"
	"net/http"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/notation"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// refuseNotation returns an error for a spec that asks Notation for what only cosign has, or names no Secret.
func refuseNotation(verify *sourcev1.OCIRepositoryVerification) error {
	switch {
	case verify.SecretRef == nil:
		return loop.Stalled(sourcev1.VerificationError, errors.New("spec.verify.provider notation needs a Secret in spec.verify.secretRef, with "+notation.PolicyKey+" and the certificates of who may sign"))
	case verify.TrustedRootSecretRef != nil || len(verify.MatchOIDCIdentity) > 0:
		return loop.Stalled(sourcev1.VerificationError, errors.New("spec.verify has identities or a trusted root, which are for cosign: name who may sign in the trustedIdentities of the trust policy"))
	default:
		return nil
	}
}

const (
	// answerTime is how long a server may take to say whether a certificate is revoked, and mostRedirects how often it may send elsewhere.
	answerTime    = 5 * time.Second
	mostRedirects = 3
)

// notation returns whose signatures of Notation count. Who is revoked is asked through the source's proxy, if it has one.
func (r reader) notation(ctx context.Context, s *state, secret map[string][]byte) (trust, error) {
	none := notarised{&notation.Trust{}}
	host, path, err := oci.Place(s.object.Spec.URL)
	if err != nil {
		return none, s.classify(err)
	}
	proxy, err := r.of(s).Proxy(ctx, s.object.Spec.ProxySecretRef)
	if err != nil {
		return none, err
	}
	client := &http.Client{Timeout: answerTime, Transport: r.egress.Transport(egress.Way{Proxy: proxy}), CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > mostRedirects {
			return oci.ErrRedirect
		}
		return nil
	}}
	out, err := notation.Parse(secret, host+"/"+path, client)
	return notarised{out}, err
}

// notarised is whose signatures of Notation count.
type notarised struct{ *notation.Trust }

func (n notarised) signer(ctx context.Context, s *state) (provenance.ArtifactSignature, error) {
	var none provenance.ArtifactSignature
	signatures := s.remote.Signatures(s.target.Digest)
	all, err := signatures.Envelopes(ctx)
	if err != nil {
		return none, err
	}
	if len(all) == 0 {
		return none, unverified{"it has no signature of Notation" + signatures.Unread()}
	}
	of, err := s.remote.Describe(ctx, s.target.Digest)
	if err != nil {
		return none, err
	}
	defer n.Close()
	var first error
	for _, sig := range all {
		who, err := n.Verify(ctx, notation.Artifact{MediaType: of.MediaType, Digest: of.Digest, Size: of.Size}, sig.Content, sig.MediaType)
		switch {
		case err == nil:
			return who, nil
		case !errors.Is(err, notation.ErrNotVerified):
			return none, err
		case first == nil:
			first = unverified{notation.Why(err) + signatures.Unread()}
		}
	}
	return none, first
}
