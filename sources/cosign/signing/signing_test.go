package signing_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/flotilla-io/flotilla/sources/cosign"
	"github.com/flotilla-io/flotilla/sources/cosign/signing"
)

var (
	digest = "sha256:" + strings.Repeat("a", 64)
	other  = "sha256:" + strings.Repeat("b", 64)
)

func must[T any](t testing.TB) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// pair is a private key as cosign keeps it, and the public one as a Secret has it.
func pair(t testing.TB, private crypto.Signer, kind, password string) (text []byte, trust *cosign.Trust) {
	t.Helper()
	content := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(private))
	if strings.HasPrefix(kind, "ENCRYPTED") {
		content = must[[]byte](t)(encrypted.EncryptWithCustomKDFParameters(content, []byte(password), encrypted.Legacy))
	}
	public := must[[]byte](t)(x509.MarshalPKIXPublicKey(private.Public()))
	trust = must[*cosign.Trust](t)(cosign.ParseKeys(map[string][]byte{"ci.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})}))
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), trust
}

func ecdsaKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(curve, rand.Reader))
}

// TestSignaturesAreVerified: what is signed here is what an OCIRepository verifies.
func TestSignaturesAreVerified(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger := must[signing.Key](t)(signing.Parse(func() ([]byte, []byte) {
		text, _ := pair(t, ecdsaKey(t, elliptic.P256()), "PRIVATE KEY", "")
		return text, nil
	}()))
	for name, test := range map[string]struct {
		private crypto.Signer
		kind    string
	}{
		"as cosign generates it":  {ecdsaKey(t, elliptic.P256()), "ENCRYPTED SIGSTORE PRIVATE KEY"},
		"as older ones generated": {ecdsaKey(t, elliptic.P256()), "ENCRYPTED COSIGN PRIVATE KEY"},
		"without a password":      {ecdsaKey(t, elliptic.P256()), "PRIVATE KEY"},
		"RSA":                     {must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048)), "ENCRYPTED SIGSTORE PRIVATE KEY"},
		"Ed25519":                 {edwards, "ENCRYPTED SIGSTORE PRIVATE KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			text, trust := pair(t, test.private, test.kind, "secret")
			key := must[signing.Key](t)(signing.Parse(text, []byte("secret")))
			bundle := must[[]byte](t)(key.Bundle(digest))
			if _, err := trust.Bundle(digest, bundle); err != nil {
				t.Errorf("the bundle: %v", err)
			}
			if _, err := trust.Bundle(other, bundle); !errors.Is(err, cosign.ErrNotVerified) {
				t.Errorf("the bundle, of another artifact: %v", err)
			}
			if !key.InBundle(digest, bundle) || key.InBundle(other, bundle) || stranger.InBundle(digest, bundle) {
				t.Error("the bundle is not known again, or too well")
			}
			simple, beside, err := key.Simple("registry.test/app", digest)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := trust.Simple(digest, simple, beside); err != nil {
				t.Errorf("the text: %v", err)
			}
			if !key.InSimple(digest, simple, beside) || key.InSimple(other, simple, beside) || stranger.InSimple(digest, simple, beside) {
				t.Error("the text is not known again, or too well")
			}
		})
	}
}

// TestKeysThatCannotSign is about files that are no such key, or not for this password.
func TestKeysThatCannotSign(t *testing.T) {
	locked, _ := pair(t, ecdsaKey(t, elliptic.P256()), "ENCRYPTED SIGSTORE PRIVATE KEY", "secret")
	curve, _ := pair(t, ecdsaKey(t, elliptic.P384()), "PRIVATE KEY", "")
	public := must[[]byte](t)(x509.MarshalPKIXPublicKey(ecdsaKey(t, elliptic.P256()).Public()))
	for name, test := range map[string]struct {
		text []byte
		is   error
		says string
	}{
		"another password": {locked, signing.ErrPassword, "wrong password for the private key, or the key is damaged"},
		"no PEM":           {[]byte("CANARY"), signing.ErrKey, "unusable private key: it is no private key in PEM, as cosign generate-key-pair writes it"},
		"the public key":   {pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), signing.ErrKey, "unusable private key: it is a public key: signatures are made with the private one, cosign.key"},
		"of SSH":           {pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: []byte("CANARY")}), signing.ErrKey, "unusable private key: it is no key of cosign's: cosign import-key-pair makes one of others"},
		"damaged":          {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("CANARY")}), signing.ErrKey, "unusable private key: what is in it is no private key in PKCS 8"},
		"another curve":    {curve, signing.ErrKey, "unusable private key: an ECDSA key has to be of the curve P-256"},
	} {
		_, err := signing.Parse(test.text, []byte("other"))
		if !errors.Is(err, test.is) || err.Error() != test.says {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParse: no file makes it panic, and none is taken that cannot sign.
func FuzzParse(f *testing.F) {
	text, _ := pair(f, ecdsaKey(f, elliptic.P256()), "PRIVATE KEY", "")
	f.Add(text, []byte(""))
	f.Add([]byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"), []byte("x"))
	f.Fuzz(func(t *testing.T, text, password []byte) {
		key, err := signing.Parse(text, password)
		if err != nil {
			return
		}
		if bundle, err := key.Bundle(digest); err != nil || !key.InBundle(digest, bundle) {
			t.Fatalf("it signs nothing that it knows: %v", err)
		}
	})
}
