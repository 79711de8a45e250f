package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// backdate makes a new certificate valid also for a client whose clock is up to a day
	// behind ours.
	backdate = 24 * time.Hour
)

// errForeign means that a file can be read but has other content than expected.
var errForeign = errors.New("holds something else")

// An authority signs certificates. Its key never changes. Its certificate is renewed with
// the same key and name, so a client that trusts the old or the new certificate accepts
// what either of them signed.
type authority struct {
	name              string // of the subject
	certFile, keyFile string
	signerFile        string // has only the certificate that signs; empty if nobody else signs
	key               crypto.Signer
	certificate       *x509.Certificate // the one that signs
}

// ensure creates the authority's key and certificate, or renews the certificate.
func (a *authority) ensure(now time.Time) error {
	key, err := ensureKey(a.keyFile)
	if err != nil {
		return err
	}
	a.key = key
	bundle, err := a.bundle()
	if err != nil {
		return err
	}
	if len(bundle) > 0 && !samePublicKey(bundle[0], key) {
		return fmt.Errorf("authority %s: %s: %w than the certificate of the key beside it", a.name, a.certFile, errForeign)
	}
	if a.certificate = standing(bundle, now); a.certificate != nil {
		return a.shareSigner()
	}
	if a.certificate, err = a.selfSign(now); err != nil {
		return fmt.Errorf("authority %s: %w", a.name, err)
	}
	content := encodeCertificate(a.certificate)
	for _, old := range bundle {
		if now.Before(old.NotAfter) {
			content = append(content, encodeCertificate(old)...)
		}
	}
	if _, err = datadir.WriteFile(a.certFile, content); err != nil {
		return err
	}
	return a.shareSigner()
}

// bundle reads the authority's certificates; nil if it has no file.
func (a *authority) bundle() ([]*x509.Certificate, error) {
	bundle, err := cert.CertsFromFile(a.certFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("authority %s: %w", a.name, err)
	}
	return bundle, nil
}

// standing returns the first certificate of a bundle, the newest, that is valid now and not
// due for renewal; nil if there is none. A certificate made by a clock that was ahead is
// skipped until it becomes valid.
func standing(bundle []*x509.Certificate, now time.Time) *x509.Certificate {
	for _, certificate := range bundle {
		if !now.Before(certificate.NotBefore) && now.Before(renewal(certificate)) {
			return certificate
		}
	}
	return nil
}

// shareSigner writes the current signing certificate to its own file, for signers that do not
// accept a bundle.
func (a *authority) shareSigner() error {
	if a.signerFile == "" {
		return nil
	}
	_, err := datadir.WriteFile(a.signerFile, encodeCertificate(a.certificate))
	return err
}

func (a *authority) selfSign(now time.Time) (*x509.Certificate, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: a.name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, template, a.key.Public(), a.key)
}

// issue signs a certificate for a new key and returns both as one PEM file,
// the certificate first.
func (a *authority) issue(template *x509.Certificate) ([]byte, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := sign(template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return append(encodeCertificate(certificate), keyPEM...), nil
}

// signed reports whether the authority's key made the certificate's signature.
func (a *authority) signed(certificate *x509.Certificate) bool {
	return certificate.CheckSignatureFrom(a.certificate) == nil
}

// renewal returns the time at which two thirds of a certificate's validity are over.
func renewal(certificate *x509.Certificate) time.Time {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotBefore.Add(life * 2 / 3)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func encodeCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate.Raw})
}

func newKey() (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

// ensureKey reads the key in the file, or creates one there if the file does not exist.
func ensureKey(file string) (crypto.Signer, error) {
	raw, err := keyutil.PrivateKeyFromFile(file)
	if err == nil {
		key, ok := raw.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("key %s: %w than a signing key", file, errForeign)
		}
		return key, nil
	}
	if _, missing := os.Stat(file); !errors.Is(missing, os.ErrNotExist) {
		return nil, fmt.Errorf("key %s: %w", filepath.Base(file), err)
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	content, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	_, err = datadir.WriteFile(file, content)
	return key, err
}

func samePublicKey(certificate *x509.Certificate, key crypto.Signer) bool {
	public, ok := key.Public().(interface{ Equal(x crypto.PublicKey) bool })
	return ok && public.Equal(certificate.PublicKey)
}
