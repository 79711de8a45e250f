package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// Errors that callers distinguish.
var (
	// ErrKey means that a private key cannot be used.
	ErrKey = errors.New("unusable private key")
	// ErrPassword means that it is not the password of the private key.
	ErrPassword = errors.New("wrong password")
)

// Key is a private key.
type Key struct {
	private crypto.Signer
	// hint is what bundles call the public key.
	hint string
}

// Types of PEM blocks.
const (
	encryptedKey, olderKey = "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY"
	plainKey               = "PRIVATE KEY"
)

// fewestBits is how long an RSA key has to be: OCIRepositories take none that is shorter.
const fewestBits = 2048

// Parse reads a private key: an encrypted one of cosign's, or one in PKCS 8 that is not encrypted. Errors: ErrKey, ErrPassword.
func Parse(text, password []byte) (Key, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return Key{}, fmt.Errorf("%w: it is no private key in PEM, as cosign generate-key-pair writes it", ErrKey)
	}
	content := block.Bytes
	switch block.Type {
	case plainKey:
	case encryptedKey, olderKey:
		var err error
		if content, err = encrypted.Decrypt(block.Bytes, password); err != nil {
			return Key{}, fmt.Errorf("%w for the private key, or the key is damaged", ErrPassword)
		}
	case "PUBLIC KEY":
		return Key{}, fmt.Errorf("%w: it is a public key: signatures are made with the private one, cosign.key", ErrKey)
	default:
		return Key{}, fmt.Errorf("%w: it is no key of cosign's: cosign import-key-pair makes one of others", ErrKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(content)
	if err != nil {
		return Key{}, fmt.Errorf("%w: what is in it is no private key in PKCS 8", ErrKey)
	}
	return keyOf(parsed)
}

// keyOf takes the kinds of keys that OCIRepositories verify.
func keyOf(parsed any) (Key, error) {
	var private crypto.Signer
	switch k := parsed.(type) {
	case *ecdsa.PrivateKey:
		if k.Curve != elliptic.P256() { // others are verified with other hashes by some
			return Key{}, fmt.Errorf("%w: an ECDSA key has to be of the curve P-256", ErrKey)
		}
		private = k
	case *rsa.PrivateKey:
		if k.N.BitLen() < fewestBits {
			return Key{}, fmt.Errorf("%w: an RSA key has to have %d bits", ErrKey, fewestBits)
		}
		private = k
	case ed25519.PrivateKey:
		private = k
	default:
		return Key{}, fmt.Errorf("%w: it is of a kind that does not sign: ECDSA, RSA and Ed25519 do", ErrKey)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return Key{}, fmt.Errorf("%w: its public key cannot be written", ErrKey)
	}
	sum := sha256.Sum256(public)
	return Key{private, base64.StdEncoding.EncodeToString(sum[:])}, nil
}

// sign returns the signature of a text.
func (k Key) sign(text []byte) ([]byte, error) {
	if _, is := k.private.(ed25519.PrivateKey); is {
		return k.private.Sign(rand.Reader, text, crypto.Hash(0))
	}
	sum := sha256.Sum256(text)
	return k.private.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// signed reports whether a text is signed with the key.
func (k Key) signed(text, signature []byte) bool {
	sum := sha256.Sum256(text)
	switch public := k.private.Public().(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(public, sum[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(public, text, signature)
	default:
		return false
	}
}
