package cosign

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

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

// Trust is whose signatures count. Use ParseKeys or ParseRoot; that of nobody is the zero value.
type Trust struct {
	keys []key

	root        *root.TrustedRoot
	fingerprint string
	identities  []provenance.Matcher
}

// Has reports whether a fingerprint is of one of the keys, or of the root.
func (t *Trust) Has(fingerprint string) bool {
	for _, k := range t.keys {
		if k.fingerprint == fingerprint {
			return true
		}
	}
	return fingerprint != "" && t.root != nil && t.fingerprint == fingerprint
}

const (
	// signPredicate is what a bundle says that is a signature of an artifact, rather than, say, the report of a scanner.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
	// statement is the type of what is signed in a bundle.
	statement = "application/vnd.in-toto+json"
)

// digestOf returns the bytes of a digest.
func digestOf(digest string) ([]byte, error) {
	text, ok := strings.CutPrefix(digest, "sha256:")
	out, err := hex.DecodeString(text)
	if !ok || err != nil || len(out) != 32 {
		return nil, refused("it has no SHA-256 digest")
	}
	return out, nil
}

// Bundle returns who signed the artifact of a digest by a bundle. Errors: ErrNotVerified.
func (t *Trust) Bundle(digest string, content []byte) (provenance.ArtifactSignature, error) {
	var none provenance.ArtifactSignature
	sum, err := digestOf(digest)
	if err != nil {
		return none, err
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(content); err != nil {
		return none, refused("it has a bundle that cannot be read")
	}
	envelope, err := b.Envelope()
	if err != nil || envelope.RawEnvelope().PayloadType != statement {
		return none, refused("it has a bundle without a statement")
	}
	who, result, err := t.judge(&b, verify.WithArtifactDigest("sha256", sum))
	if err != nil {
		return none, err
	}
	if result.Statement.GetPredicateType() != signPredicate {
		return none, refused("it has an attestation by %s, which is no signature", short(who.Name))
	}
	return who, nil
}

// judge returns who signed something.
func (t *Trust) judge(entity verify.SignedEntity, artifact verify.ArtifactPolicyOption) (provenance.ArtifactSignature, *verify.VerificationResult, error) {
	if t.root != nil {
		return t.judgeByRoot(entity, artifact)
	}
	for _, k := range t.keys {
		material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
			return root.NewExpiringKey(k.verifier, time.Time{}, time.Time{}), nil
		})
		verifier, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
		if err != nil {
			return provenance.ArtifactSignature{}, nil, fmt.Errorf("verify with a key: %w", err)
		}
		if result, err := verifier.Verify(entity, verify.NewPolicy(artifact, verify.WithKey())); err == nil {
			return signedBy(k), result, nil
		}
	}
	return provenance.ArtifactSignature{}, nil, errOtherKey
}

var errOtherKey = refused("its signature is by no key of the Secret, or of another digest")

func signedBy(k key) provenance.ArtifactSignature {
	return provenance.ArtifactSignature{Signature: provenance.Signature{Key: k.fingerprint, Name: k.name}}
}

// judgeByRoot verifies signature, certificate, log and time by the root, and after that whose the certificate is.
func (t *Trust) judgeByRoot(entity verify.SignedEntity, artifact verify.ArtifactPolicyOption) (provenance.ArtifactSignature, *verify.VerificationResult, error) {
	var none provenance.ArtifactSignature
	opts := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if len(t.root.CTLogs()) > 0 {
		opts = append(opts, verify.WithSignedCertificateTimestamps(1))
	}
	verifier, err := verify.NewVerifier(t.root, opts...)
	if err != nil {
		return none, nil, fmt.Errorf("verify with a root: %w", err)
	}
	// Whose it is is looked at below, so that who it is can be said.
	result, err := verifier.Verify(entity, verify.NewPolicy(artifact, verify.WithoutIdentitiesUnsafe()))
	if err != nil {
		return none, nil, unvouched(err)
	}
	if result.Signature == nil || result.Signature.Certificate == nil || len(result.VerifiedTimestamps) == 0 {
		return none, nil, refused("it is signed without a certificate")
	}
	of := result.Signature.Certificate
	issuer, subject := of.Issuer, of.SubjectAlternativeName
	if !provenance.Matches(t.identities, issuer, subject) {
		return none, nil, refused("it is signed by %s, as %s says, which spec.verify.matchOIDCIdentity does not name", short(subject), short(issuer))
	}
	return provenance.ArtifactSignature{
		Signature: provenance.Signature{Key: t.fingerprint, Name: subject, Signed: result.VerifiedTimestamps[0].Timestamp}, Issuer: issuer,
	}, result, nil
}

// short is what a certificate says, for a message.
func short(text string) string { return excerpt.Runes(excerpt.Line(text), 200) }

// unvouched says why a root does not vouch for a signature, and nothing of what it is about.
func unvouched(err error) error {
	for begins, why := range map[string]string{
		"failed to verify log inclusion":                "it has a signature that no log of the trusted root vouches for",
		"failed to verify timestamps":                   "it has a signature of which the trusted root does not vouch for the time",
		"failed to verify leaf certificate":             "it is signed with a certificate of no authority that the trusted root had when it was signed",
		"failed to verify signed certificate timestamp": "it is signed with a certificate that no certificate log of the trusted root vouches for",
		"failed to verify signature":                    "it has a signature that is not by its certificate, or of something else",
	} {
		if strings.HasPrefix(err.Error(), begins) {
			return refused("%s", why)
		}
	}
	return refused("it has a signature that the trusted root does not vouch for")
}

// simpleType is what the text of a simple signature says that it is.
const simpleType = "cosign container image signature"

// simple is the text of a simple signature.
type simple struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// signatureAnnotation has the signature of a text.
const signatureAnnotation = "dev.cosignproject.cosign/signature"

// Simple returns who signed the artifact of a digest by a text, what stands beside which is in annotations. Errors: ErrNotVerified.
func (t *Trust) Simple(digest string, text []byte, annotations map[string]string) (provenance.ArtifactSignature, error) {
	var none provenance.ArtifactSignature
	if _, err := digestOf(digest); err != nil {
		return none, err
	}
	sig, err := base64.StdEncoding.DecodeString(annotations[signatureAnnotation])
	if err != nil || len(sig) == 0 {
		return none, refused("it has a signature that cannot be read")
	}
	who, err := t.signer(text, sig, annotations)
	if err != nil {
		return none, err
	}
	var says simple
	switch err := json.Unmarshal(text, &says); {
	case err != nil || says.Critical.Type != simpleType:
		return none, refused("it has a signature by %s, of a text that is not about an artifact", short(who.Name))
	case says.Critical.Image.Digest != digest:
		return none, refused("it has a signature by %s, of another artifact", short(who.Name))
	}
	return who, nil
}

// signer returns who signed a text.
func (t *Trust) signer(text, sig []byte, annotations map[string]string) (provenance.ArtifactSignature, error) {
	if t.root != nil {
		entity, err := entityOf(text, sig, annotations)
		if err != nil {
			return provenance.ArtifactSignature{}, err
		}
		who, _, err := t.judgeByRoot(entity, verify.WithArtifact(bytes.NewReader(text)))
		return who, err
	}
	for _, k := range t.keys {
		if k.verifier.VerifySignature(bytes.NewReader(sig), bytes.NewReader(text)) == nil {
			return signedBy(k), nil
		}
	}
	return provenance.ArtifactSignature{}, errOtherKey
}
