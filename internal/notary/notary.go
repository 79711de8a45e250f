package notary

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	_ "github.com/notaryproject/notation-core-go/signature/cose" // the envelopes that are written
	_ "github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/signer"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Media types of envelopes.
const (
	JWS  = "application/jose+json"
	COSE = "application/cose"
)

// Authority vouches for signers.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns a new one, of some organisation.
func NewAuthority(organisation string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject("Root", organisation), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return &Authority{certificate, key}, err
}

func subject(name, organisation string) pkix.Name {
	return pkix.Name{CommonName: name, Organization: []string{organisation}, Country: []string{"DE"}, Province: []string{"BE"}}
}

// Root returns its certificate, in PEM.
func (a *Authority) Root() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Key is a private key, in PEM, as nobody should give it away.
func (a *Authority) Key() ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(a.key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), err
}

// Signer is who signs.
type Signer struct {
	key    *ecdsa.PrivateKey
	chain  []*x509.Certificate
	serial *big.Int
	// signs is when it signs; zero is now.
	signs time.Time
}

// Issue says what is particular about a certificate. The zero value is an ordinary one.
type Issue struct {
	// Ended ends it before now; what it signs says that it was signed before.
	Ended bool
	// Revocations is where the list of what is revoked is kept; empty for nowhere.
	Revocations string
}

// Signer returns one of a name, in the organisation of the authority.
func (a *Authority) Signer(name string, of Issue) (*Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject(name, a.certificate.Subject.Organization[0]),
		NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if of.Ended {
		template.NotAfter = time.Now().Add(-time.Minute)
	}
	if of.Revocations != "" {
		template.CRLDistributionPoints = []string{of.Revocations}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	out := &Signer{key: key, chain: []*x509.Certificate{certificate, a.certificate}, serial: template.SerialNumber}
	if of.Ended {
		out.signs = template.NotAfter.Add(-time.Minute)
	}
	return out, err
}

// Revoked returns the list of what is revoked, with the certificates of some signers.
func (a *Authority) Revoked(signers ...*Signer) ([]byte, error) {
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, s := range signers {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: s.serial, RevocationTime: time.Now().Add(-time.Minute)})
	}
	return x509.CreateRevocationList(rand.Reader, list, a.certificate, a.key)
}

// Artifact is what is signed.
type Artifact struct {
	MediaType, Digest string
	Size              int64
}

// Sign returns an envelope of a media type. It counts for some time; zero for ever.
func (s *Signer) Sign(ctx context.Context, of Artifact, mediaType string, counts time.Duration) ([]byte, error) {
	if !s.signs.IsZero() {
		return s.envelope(ctx, of, mediaType, s.signs)
	}
	by, err := signer.NewGenericSigner(s.key, s.chain)
	if err != nil {
		return nil, err
	}
	out, _, err := by.Sign(ctx, ocispec.Descriptor{MediaType: of.MediaType, Digest: digest.Digest(of.Digest), Size: of.Size},
		notation.SignerSignOptions{SignatureMediaType: mediaType, ExpiryDuration: counts})
	return out, err
}

// SignForPlugin is Sign for an envelope that asks for a plugin.
func (s *Signer) SignForPlugin(ctx context.Context, of Artifact) ([]byte, error) {
	return s.envelope(ctx, of, JWS, time.Now(), signature.Attribute{Key: "io.cncf.notary.verificationPlugin", Critical: true, Value: "any"})
}

// envelope signs as Notation does, with more attributes, and at some time.
func (s *Signer) envelope(ctx context.Context, of Artifact, mediaType string, at time.Time, attributes ...signature.Attribute) ([]byte, error) {
	by, err := signature.NewLocalSigner(s.chain, s.key)
	if err != nil {
		return nil, err
	}
	envelope, err := signature.NewEnvelope(mediaType)
	if err != nil {
		return nil, err
	}
	return envelope.Sign((&signature.SignRequest{
		Payload: signature.Payload{
			ContentType: "application/vnd.cncf.notary.payload.v1+json",
			Content:     fmt.Appendf(nil, `{"targetArtifact":{"mediaType":%q,"digest":%q,"size":%d}}`, of.MediaType, of.Digest, of.Size),
		},
		Signer: by, SigningTime: at, SigningScheme: signature.SigningSchemeX509, ExtendedSignedAttributes: attributes,
	}).WithContext(ctx))
}

// Policy returns a trust policy of a level for some repositories, by which some identities may sign.
func Policy(level, scope string, identities ...string) []byte {
	return fmt.Appendf(nil, `{"version":"1.0","trustPolicies":[{"name":"fleet","registryScopes":[%q],"signatureVerification":{"level":%q},"trustStores":["ca:fleet"],"trustedIdentities":["%s"]}]}`,
		scope, level, strings.Join(identities, `","`))
}

// Named is the identity of a signer of a name, as policies have it.
func Named(name, organisation string) string {
	return "x509.subject: C=DE, ST=BE, O=" + organisation + ", CN=" + name
}
