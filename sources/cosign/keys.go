package cosign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"
)

// ErrKeys means that a Secret does not hold public keys, or a trusted root, as it should.
var ErrKeys = errors.New("invalid public keys")

const (
	// keySuffix is the end of the names of the Secret's keys that hold public keys; all others are left alone, as in Flux.
	keySuffix = ".pub"
	// fewestBits is how long an RSA key has to be, and mostBits how long it may.
	fewestBits, mostBits = 2048, 8192
	// maxKeys is how many keys a Secret may have.
	maxKeys = 100
)

// key is a public key.
type key struct {
	name, fingerprint string
	verifier          signature.Verifier
}

// ParseKeys reads the data of a Secret in Flux's format: names that end in .pub hold one public key each, as cosign writes it. Errors:
// ErrKeys, which names what is wrong first, and shows none of it; the keys that could be read come with it.
func ParseKeys(secret map[string][]byte) (*Trust, error) {
	trust := &Trust{}
	var first error
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		if !strings.HasSuffix(name, keySuffix) {
			continue
		}
		k, err := parseKey(name, secret[name])
		if err == nil && len(trust.keys) == maxKeys {
			err = fmt.Errorf("more than %d keys are too many", maxKeys)
		}
		if err == nil {
			trust.keys = append(trust.keys, k)
		} else if first == nil {
			first = fmt.Errorf("%w: key %s: %w", ErrKeys, name, err)
		}
	}
	if first == nil && len(trust.keys) == 0 {
		first = fmt.Errorf("%w: there is none: put those that cosign generate-key-pair writes into NAME%s", ErrKeys, keySuffix)
	}
	return trust, first
}

func parseKey(name string, text []byte) (key, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return key{}, errors.New("it is no public key in PEM, as cosign public-key prints it")
	case strings.Contains(block.Type, "PRIVATE"):
		return key{}, errors.New("it is a private key: put only the public one there, and make a new one, as others may know it now")
	case len(bytes.TrimSpace(rest)) > 0:
		return key{}, errors.New("it is more than one key: give each a name of its own")
	case block.Type != "PUBLIC KEY":
		return key{}, errors.New("it is no public key, but something else in PEM")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return key{}, errors.New("it cannot be read as a public key")
	}
	verifier, err := verifierOf(public)
	if err != nil {
		return key{}, err
	}
	canonical, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return key{}, errors.New("it cannot be read as a public key")
	}
	return key{name, fingerprint(canonical), verifier}, nil
}

func fingerprint(content []byte) string {
	sum := sha256.Sum256(content)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// verifierOf returns what verifies signatures with a key.
func verifierOf(public crypto.PublicKey) (signature.Verifier, error) {
	hashes := []crypto.Hash{crypto.SHA256}
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve { // signers take a hash of the curve's size, older ones SHA-256 with all
		case elliptic.P256():
		case elliptic.P384():
			hashes = append(hashes, crypto.SHA384)
		case elliptic.P521():
			hashes = append(hashes, crypto.SHA512)
		default:
			return nil, errors.New("it is of a curve that is not known")
		}
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < fewestBits || bits > mostBits {
			return nil, fmt.Errorf("it is an RSA key of %d bits: make one of %d to %d", bits, fewestBits, mostBits)
		}
	case ed25519.PublicKey:
	default:
		return nil, errors.New("it is of a kind that is not known: ECDSA, RSA and Ed25519 are")
	}
	var all either
	for _, hash := range hashes {
		verifier, err := signature.LoadVerifier(public, hash)
		if err != nil {
			return nil, errors.New("it cannot be used to verify anything")
		}
		all = append(all, verifier)
	}
	return all, nil
}

// either verifies what one of its verifiers does.
type either []signature.Verifier

// PublicKey returns the key, which all of them have.
func (e either) PublicKey(opts ...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return e[0].PublicKey(opts...)
}

// VerifySignature returns nil if one of them does.
func (e either) VerifySignature(sig, message io.Reader, opts ...signature.VerifyOption) error {
	signed, err := io.ReadAll(sig)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(message)
	if err != nil {
		return err
	}
	for _, v := range e {
		if err = v.VerifySignature(bytes.NewReader(signed), bytes.NewReader(text), opts...); err == nil {
			return nil
		}
	}
	return err
}
