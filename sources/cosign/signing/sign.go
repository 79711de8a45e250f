package signing

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

const (
	// BundleType is the media type of a bundle, and Predicate what it says that it is: a signature.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	Predicate  = "https://sigstore.dev/cosign/sign/v1"
	// SimpleType is the media type of the text of a simple signature, and SignatureAnnotation what has the signature of it.
	SimpleType          = "application/vnd.dev.cosign.simplesigning.v1+json"
	SignatureAnnotation = "dev.cosignproject.cosign/signature"

	statementType = "application/vnd.in-toto+json"
	simpleKind    = "cosign container image signature"
	algorithm     = "sha256:"
)

// statement is what a bundle says.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     struct{}  `json:"predicate"`
}

type subject struct {
	Digest map[string]string `json:"digest"`
}

// bundle is the part of a bundle that a key needs: certificates, logs and times are of others.
type bundle struct {
	MediaType string `json:"mediaType"`
	Material  struct {
		PublicKey struct {
			Hint string `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	Envelope struct {
		Payload     []byte      `json:"payload"`
		PayloadType string      `json:"payloadType"`
		Signatures  []signature `json:"signatures"`
	} `json:"dsseEnvelope"`
}

type signature struct {
	Sig []byte `json:"sig"`
}

// Bundle signs the artifact of a digest, as cosign 3 does.
func (k Key) Bundle(digest string) ([]byte, error) {
	payload, err := json.Marshal(statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: Predicate,
		Subject: []subject{{map[string]string{"sha256": strings.TrimPrefix(digest, algorithm)}}},
	})
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", digest, err)
	}
	sig, err := k.sign(dsse.PAE(statementType, payload))
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", digest, err)
	}
	var out bundle
	out.MediaType, out.Material.PublicKey.Hint = BundleType, k.hint
	out.Envelope.Payload, out.Envelope.PayloadType, out.Envelope.Signatures = payload, statementType, []signature{{sig}}
	return json.Marshal(out)
}

// InBundle reports whether a bundle is a signature of the artifact of a digest by the key.
func (k Key) InBundle(digest string, content []byte) bool {
	var b bundle
	var says statement
	if json.Unmarshal(content, &b) != nil || len(b.Envelope.Signatures) != 1 || b.Envelope.PayloadType != statementType || json.Unmarshal(b.Envelope.Payload, &says) != nil {
		return false
	}
	return says.PredicateType == Predicate && len(says.Subject) == 1 && algorithm+says.Subject[0].Digest["sha256"] == digest &&
		k.signed(dsse.PAE(statementType, b.Envelope.Payload), b.Envelope.Signatures[0].Sig)
}

// simple is the text of a simple signature.
type simple struct {
	Critical critical       `json:"critical"`
	Optional map[string]any `json:"optional"`
}

type critical struct {
	Identity struct {
		Reference string `json:"docker-reference"`
	} `json:"identity"`
	Image struct {
		Digest string `json:"docker-manifest-digest"`
	} `json:"image"`
	Type string `json:"type"`
}

// Simple signs the artifact of a digest in a repository, as cosign 2 does: it returns a text, and what stands beside it.
func (k Key) Simple(repository, digest string) (text []byte, annotations map[string]string, err error) {
	var says simple
	says.Critical.Identity.Reference, says.Critical.Image.Digest, says.Critical.Type = repository, digest, simpleKind
	if text, err = json.Marshal(says); err != nil {
		return nil, nil, fmt.Errorf("sign %s: %w", digest, err)
	}
	sig, err := k.sign(text)
	if err != nil {
		return nil, nil, fmt.Errorf("sign %s: %w", digest, err)
	}
	return text, map[string]string{SignatureAnnotation: base64.StdEncoding.EncodeToString(sig)}, nil
}

// InSimple reports whether a text is a signature of the artifact of a digest by the key.
func (k Key) InSimple(digest string, text []byte, annotations map[string]string) bool {
	var says simple
	sig, err := base64.StdEncoding.DecodeString(annotations[SignatureAnnotation])
	return err == nil && json.Unmarshal(text, &says) == nil && says.Critical.Type == simpleKind && says.Critical.Image.Digest == digest && k.signed(text, sig)
}
