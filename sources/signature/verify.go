package signature

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// ErrNotVerified means that a text is not signed by one of the keys.
var ErrNotVerified = errors.New("not verified")

// Signer is who signed a text.
type Signer struct {
	// Key is the fingerprint of the key that signed: of OpenPGP in upper-case hex, of SSH as in "SHA256:…".
	Key string
	// Name is what the key says of its owner, such as "Name <mail>"; it may be empty.
	Name string
	// Signed is the time that the signature states. It is zero for SSH signatures, which state none.
	Signed time.Time
}

const (
	pgpBegin  = "-----BEGIN PGP SIGNATURE-----"
	sshBegin  = "-----BEGIN SSH SIGNATURE-----"
	x509Begin = "-----BEGIN SIGNED MESSAGE-----"
	// sshNamespace is what Git's signatures are made for: one that was made for something else is none of a commit.
	sshNamespace = "git"
)

// Verify returns who signed text. The key has to be valid now, as the Secret has it.
// Errors: ErrNotVerified, which says why.
func (k *Keys) Verify(text []byte, signature string, now time.Time) (Signer, error) {
	var who Signer
	var err error
	switch signature = strings.TrimSpace(signature); {
	case signature == "":
		err = errors.New("it is not signed")
	case strings.HasPrefix(signature, pgpBegin):
		who, err = k.verifyPGP(text, signature, now)
	case strings.HasPrefix(signature, sshBegin):
		who, err = k.verifySSH(text, signature)
	case strings.HasPrefix(signature, x509Begin):
		err = errors.New("it is signed with an X.509 certificate (S/MIME), which is not supported: sign with an OpenPGP or SSH key")
	default:
		err = errors.New("its signature is of no known kind")
	}
	if err != nil {
		return Signer{}, fmt.Errorf("%w: %w", ErrNotVerified, err)
	}
	return who, nil
}

func (k *Keys) verifyPGP(text []byte, signature string, now time.Time) (Signer, error) {
	armored, err := armor.Decode(strings.NewReader(signature))
	if err != nil || armored.Type != openpgp.SignatureType {
		return Signer{}, errDamaged
	}
	packets, err := io.ReadAll(io.LimitReader(armored.Body, longestSignature))
	if err != nil {
		return Signer{}, errDamaged
	}
	config := &packet.Config{Time: func() time.Time { return now }}
	made, by, err := openpgp.VerifyDetachedSignature(k.pgp, bytes.NewReader(text), bytes.NewReader(packets), config)
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return Signer{}, fmt.Errorf("it is signed by the OpenPGP key %s, which is not among those of the Secret", issuerOf(packets))
	case errors.Is(err, pgperrors.ErrKeyExpired), errors.Is(err, pgperrors.ErrKeyRevoked):
		return Signer{}, fmt.Errorf("it is signed by the OpenPGP key %s, which is revoked or has expired: put a valid one into the Secret", issuerOf(packets))
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return Signer{}, errors.New("its OpenPGP signature has expired, or is from a time to come")
	case err != nil:
		return Signer{}, errors.New("its OpenPGP signature does not fit, or is damaged")
	}
	key, may := by.SigningKeyById(now, *made.IssuerKeyId)
	if !may {
		return Signer{}, fmt.Errorf("it is signed by the OpenPGP key %s, which may not sign", issuerOf(packets))
	}
	if weak[made.Hash] || mayVouch(key.PublicKey) != nil {
		return Signer{}, errors.New("its OpenPGP signature is too weak: sign with SHA-256 or better, and no short or DSA key")
	}
	who := Signer{Key: fingerprintOf(key.PublicKey), Signed: made.CreationTime}
	if identity := by.PrimaryIdentity(); identity != nil {
		who.Name = identity.Name
	}
	return who, nil
}

// longestSignature is how many bytes of an OpenPGP signature are read.
const longestSignature = 1 << 20

var errDamaged = errors.New("its OpenPGP signature is damaged")

// weak are the hashes for which others may find another text.
var weak = map[crypto.Hash]bool{crypto.MD5: true, crypto.SHA1: true, crypto.RIPEMD160: true}

// issuerOf returns the key that an OpenPGP signature names as its own, as it says itself.
func issuerOf(packets []byte) string {
	p, err := packet.Read(bytes.NewReader(packets))
	sig, ok := p.(*packet.Signature)
	switch {
	case err != nil || !ok:
		return "that it does not name"
	case len(sig.IssuerFingerprint) > 0:
		return strings.ToUpper(hex.EncodeToString(sig.IssuerFingerprint))
	case sig.IssuerKeyId != nil:
		return fmt.Sprintf("%016X", *sig.IssuerKeyId)
	default:
		return "that it does not name"
	}
}

func (k *Keys) verifySSH(text []byte, signature string) (Signer, error) {
	parsed, err := sshsig.Unarmor([]byte(signature + "\n"))
	if err != nil {
		return Signer{}, errors.New("its SSH signature is damaged")
	}
	for _, trusted := range k.ssh {
		if !bytes.Equal(trusted.key.Marshal(), parsed.PublicKey.Marshal()) {
			continue
		}
		if parsed.Namespace != sshNamespace {
			return Signer{}, errors.New("its SSH signature was made for something else than Git")
		}
		if err := sshsig.Verify(bytes.NewReader(text), parsed, trusted.key, parsed.HashAlgorithm, sshNamespace); err != nil {
			return Signer{}, errors.New("its SSH signature does not fit")
		}
		return Signer{Key: ssh.FingerprintSHA256(trusted.key), Name: trusted.comment}, nil
	}
	return Signer{}, fmt.Errorf("it is signed by the SSH key %s, which is not among those of the Secret", ssh.FingerprintSHA256(parsed.PublicKey))
}
