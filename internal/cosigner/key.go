package cosigner

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
)

// Predicates of statements.
const (
	Sign = "https://sigstore.dev/cosign/sign/v1"
	Scan = "https://cosign.sigstore.dev/attestation/vuln/v1"
)

const statementType = "application/vnd.in-toto+json"

// Key is a pair of keys.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey returns a new pair of keys.
func NewKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return Key{private}, err
}

// Public returns the public key, as cosign.pub has it.
func (k Key) Public() ([]byte, error) {
	text, err := x509.MarshalPKIXPublicKey(k.private.Public())
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text}), err
}

func (k Key) sign(text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	return k.private.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// Simple is a simple signature, as cosign 2 keeps it.
type Simple struct {
	Text        []byte
	Annotations map[string]string
}

// Text returns what is signed of an artifact of a digest.
func Text(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"registry.test/app"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// Simple signs the artifact of a digest.
func (k Key) Simple(digest string) (Simple, error) { return k.SimpleText(Text(digest)) }

// SimpleText signs a text.
func (k Key) SimpleText(text []byte) (Simple, error) {
	sig, err := k.sign(text)
	return Simple{text, map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig)}}, err
}

// Statement returns what a bundle says of an artifact of a digest.
func Statement(digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
}

// envelope is what is signed of a statement, and how it is kept.
func envelope(statement []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(statementType), statementType, len(statement), statement)
}

// Bundle signs the artifact of a digest, as cosign 3 keeps it.
func (k Key) Bundle(digest, predicate string) ([]byte, error) {
	statement := Statement(digest, predicate)
	sig, err := k.sign(envelope(statement))
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]string{"hint": "any"}},
		"dsseEnvelope": map[string]any{
			"payload": statement, "payloadType": statementType, "signatures": []any{map[string]any{"sig": sig}},
		},
	})
}
