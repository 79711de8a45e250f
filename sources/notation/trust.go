package notation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// ErrTrust means that a Secret does not hold a trust policy and certificates as it should.
var ErrTrust = errors.New("invalid trust policy")

// PolicyKey is the key of the Secret that holds the trust policy.
const PolicyKey = "trustpolicy.json"

const (
	// maxPolicy and maxFile are the sizes of the policy, and of one key with certificates, in bytes.
	maxPolicy, maxFile = 64 << 10, 256 << 10
	// maxCertificates is how many certificates a Secret may have.
	maxCertificates = 100
	// maxFault is how much is told of what is wrong with a policy, in runes.
	maxFault = 300
)

// Trust is whose signatures count, and by which policy. Use Parse; that of nobody is the zero value.
type Trust struct {
	place       string
	policy      *trustpolicy.Document
	store       store
	fingerprint string
	client      *http.Client
}

// Has reports whether a fingerprint is of this policy with these certificates.
func (t *Trust) Has(fingerprint string) bool {
	return fingerprint != "" && t.fingerprint == fingerprint
}

// Close closes what connections there are to servers that were asked.
func (t *Trust) Close() {
	if t.client != nil {
		t.client.CloseIdleConnections()
	}
}

// Parse reads the data of a Secret in Flux's format: the trust policy, and certificates in names that end in .pem or .crt. place is
// the registry and the repository, by which the policy's statements are chosen; client asks who is revoked. Errors: ErrTrust, which
// names what is wrong first.
func Parse(secret map[string][]byte, place string, client *http.Client) (*Trust, error) {
	policy, err := parsePolicy(secret[PolicyKey], place)
	if err != nil {
		return &Trust{}, fmt.Errorf("%w: %w", ErrTrust, err)
	}
	hash := sha256.New()
	hash.Write(secret[PolicyKey])
	var certificates store
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		if suffix := path.Ext(name); suffix != ".pem" && suffix != ".crt" {
			continue
		}
		of, err := parseCertificates(secret[name])
		if err == nil && len(certificates)+len(of) > maxCertificates {
			err = fmt.Errorf("more than %d certificates are too many", maxCertificates)
		}
		if err != nil {
			return &Trust{}, fmt.Errorf("%w: key %s: %w", ErrTrust, name, err)
		}
		for _, c := range of {
			fmt.Fprintf(hash, " %d ", len(c.Raw))
			hash.Write(c.Raw)
		}
		certificates = append(certificates, of...)
	}
	if len(certificates) == 0 {
		return &Trust{}, fmt.Errorf("%w: there is no certificate: put that of the authority whose signatures count into NAME.pem or NAME.crt", ErrTrust)
	}
	sum := "SHA256:" + base64.RawStdEncoding.EncodeToString(hash.Sum(nil))
	return &Trust{place: place, policy: policy, store: certificates, fingerprint: sum, client: client}, nil
}

// parsePolicy reads a trust policy, and refuses one by which anybody may sign what is at a place.
func parsePolicy(text []byte, place string) (*trustpolicy.Document, error) {
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("there is no key %s", PolicyKey)
	case len(text) > maxPolicy:
		return nil, fmt.Errorf("%s has more than %d bytes", PolicyKey, maxPolicy)
	}
	var policy trustpolicy.Document
	if err := json.Unmarshal(text, &policy); err != nil {
		return nil, fmt.Errorf("%s is no trust policy in JSON, as notation policy show prints it", PolicyKey)
	}
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %s", PolicyKey, excerpt.Runes(excerpt.Line(err.Error()), maxFault))
	}
	statement, err := policy.GetApplicableTrustPolicy(place + "@sha256:" + strings.Repeat("0", 64))
	if err != nil {
		return nil, fmt.Errorf("%s has no statement for %s: name it, or *, in registryScopes", PolicyKey, place)
	}
	level, err := statement.SignatureVerification.GetVerificationLevel()
	if err != nil {
		return nil, fmt.Errorf("%s: %s", PolicyKey, excerpt.Runes(excerpt.Line(err.Error()), maxFault))
	}
	if level.Enforcement[trustpolicy.TypeAuthenticity] != trustpolicy.ActionEnforce {
		return nil, fmt.Errorf("%s takes what anybody signs, as authenticity is not enforced for %s: set the level of signatureVerification to strict or permissive, or leave out spec.verify", PolicyKey, place)
	}
	return &policy, nil
}

// parseCertificates reads the certificates of one key, in PEM or DER.
func parseCertificates(content []byte) ([]*x509.Certificate, error) {
	if len(content) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	block, rest := pem.Decode(content)
	if block == nil {
		out, err := x509.ParseCertificates(content)
		if err != nil || len(out) == 0 {
			return nil, errors.New("it is no certificate, in PEM or DER")
		}
		return out, nil
	}
	var out []*x509.Certificate
	for ; block != nil; block, rest = pem.Decode(rest) {
		switch {
		case strings.Contains(block.Type, "PRIVATE"):
			return nil, errors.New("it has a private key: put only certificates there, and make a new key, as others may know it now")
		case block.Type != "CERTIFICATE":
			return nil, errors.New("it has something else than certificates")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("it has a certificate that cannot be read")
		}
		out = append(out, c)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it has something else than certificates")
	}
	return out, nil
}

// store are the certificates of the Secret, which as in Flux stand for each store that a policy names.
type store []*x509.Certificate

// GetCertificates returns all certificates.
func (s store) GetCertificates(context.Context, truststore.Type, string) ([]*x509.Certificate, error) {
	return s, nil
}
