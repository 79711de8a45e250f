package notation

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-core-go/revocation/result"
	"github.com/notaryproject/notation-core-go/signature"
	_ "github.com/notaryproject/notation-core-go/signature/cose" // the envelopes that are read
	_ "github.com/notaryproject/notation-core-go/signature/jws"
	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/provenance"
)

// ErrNotVerified means that a signature does not count. It is wrapped with the reason, which begins with "it", the artifact.
var ErrNotVerified = errors.New("not verified")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotVerified, fmt.Sprintf(format, args...))
}

// Why returns the reason of an ErrNotVerified.
func Why(err error) string { return strings.TrimPrefix(err.Error(), ErrNotVerified.Error()+": ") }

// Artifact is the manifest of an artifact, or its index: what is signed.
type Artifact struct {
	MediaType, Digest string
	// Size is in bytes.
	Size int64
}

// Verify returns who signed an artifact by an envelope of a media type. Errors: ErrNotVerified.
func (t *Trust) Verify(ctx context.Context, of Artifact, envelope []byte, mediaType string) (provenance.ArtifactSignature, error) {
	var none provenance.ArtifactSignature
	if t.policy == nil {
		return none, refused("there is no trust policy by which it may be signed")
	}
	asked, err := t.asked()
	if err != nil {
		return none, err
	}
	times, err := t.validator(purpose.Timestamping)
	if err != nil {
		return none, err
	}
	judge, err := verifier.NewWithOptions(t.policy, t.store, nil, verifier.VerifierOptions{RevocationCodeSigningValidator: asked, RevocationTimestampingValidator: times})
	if err != nil {
		return none, fmt.Errorf("verify by the trust policy: %w", err)
	}
	outcome, err := judge.Verify(ctx, ocispec.Descriptor{MediaType: of.MediaType, Digest: digest.Digest(of.Digest), Size: of.Size}, envelope,
		notationgo.VerifierVerifyOptions{ArtifactReference: t.place + "@" + of.Digest, SignatureMediaType: mediaType})
	if err != nil {
		return none, why(outcome, asked)
	}
	chain := outcome.EnvelopeContent.SignerInfo.CertificateChain
	return provenance.ArtifactSignature{
		Signature: provenance.Signature{Key: t.fingerprint, Name: chain[0].Subject.String(), Signed: outcome.EnvelopeContent.SignerInfo.SignedAttributes.SigningTime},
		Issuer:    cmp.Or(chain[len(chain)-1].Subject.String(), "an authority without a name"), Certified: true,
	}, nil
}

// why says why a signature does not count.
func why(outcome *notationgo.VerificationOutcome, asked *revocations) error {
	if outcome == nil || outcome.EnvelopeContent == nil {
		return refused("it has a signature that cannot be read, or is not what was signed")
	}
	who := signer(outcome.EnvelopeContent.SignerInfo.CertificateChain)
	for _, of := range outcome.VerificationResults {
		if of.Error == nil || of.Action != trustpolicy.ActionEnforce {
			continue
		}
		var stranger *signature.SignatureAuthenticityError
		switch of.Type {
		case trustpolicy.TypeAuthenticity:
			if errors.As(of.Error, &stranger) {
				return refused("it is signed by %s, for whom no certificate of the Secret vouches", who)
			}
			return refused("it is signed by %s, who is none of the trustedIdentities of the trust policy", who)
		case trustpolicy.TypeExpiry:
			return refused("it is signed by %s until a time that is over", who)
		case trustpolicy.TypeAuthenticTimestamp:
			return refused("it is signed by %s, and it is not known that the certificate was valid then: it has ended, or an authority for times that the trust policy asks for does not say so", who)
		case trustpolicy.TypeRevocation:
			if asked.revoked {
				return refused("it is signed by %s, and the certificate is revoked", who)
			}
			return refused("it is signed by %s, and whether the certificate is revoked could not be asked: see that the servers that it names are reached, or have the trust policy skip revocation", who)
		}
		return refused("it has a signature that is not what was signed")
	}
	if plugin(outcome.EnvelopeContent.SignerInfo) {
		return refused("it is signed by %s in a way that needs a plugin of Notation, which is not supported", who)
	}
	return refused("it has a signature by %s, of another artifact", who)
}

// pluginAttribute is the attribute by which a signature asks for a plugin.
const pluginAttribute = "io.cncf.notary.verificationPlugin"

func plugin(of signature.SignerInfo) bool {
	for _, a := range of.SignedAttributes.ExtendedAttributes {
		if a.Key == pluginAttribute {
			return true
		}
	}
	return false
}

// longestName is how much of the subject of a certificate a message shows, in runes: anybody may have made it.
const longestName = 200

func signer(chain []*x509.Certificate) string {
	if len(chain) == 0 {
		return "somebody"
	}
	return excerpt.Runes(excerpt.Line(chain[0].Subject.String()), longestName)
}

// revocations asks whether certificates are revoked, and notes that one is.
type revocations struct {
	revocation.Validator
	revoked bool
}

func (t *Trust) asked() (*revocations, error) {
	of, err := t.validator(purpose.CodeSigning)
	return &revocations{Validator: of}, err
}

// validator returns what asks, by the Trust's client only.
func (t *Trust) validator(of purpose.Purpose) (revocation.Validator, error) {
	lists, err := crl.NewHTTPFetcher(t.client)
	if err != nil {
		return nil, fmt.Errorf("ask for lists of revoked certificates: %w", err)
	}
	out, err := revocation.NewWithOptions(revocation.Options{OCSPHTTPClient: t.client, CRLFetcher: lists, CertChainPurpose: of})
	if err != nil {
		return nil, fmt.Errorf("ask for revoked certificates: %w", err)
	}
	return out, nil
}

// ValidateContext asks about the certificates of a chain.
func (r *revocations) ValidateContext(ctx context.Context, opts revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	out, err := r.Validator.ValidateContext(ctx, opts)
	for _, of := range out {
		r.revoked = r.revoked || of.Result == result.ResultRevoked
	}
	return out, err
}
