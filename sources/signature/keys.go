package signature

import (
	"bytes"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla-io/flotilla/internal/privatekey"
)

// ErrKeys means that a Secret does not hold public keys as it should.
var ErrKeys = errors.New("invalid public keys")

const (
	// sshSuffix is the end of the names of the Secret's keys that hold SSH keys; all others hold OpenPGP keys.
	sshSuffix = ".sshpub"
	// fewestBits is how long an RSA key has to be.
	fewestBits = 2048
)

// Keys are the public keys whose signatures count. Use Parse.
type Keys struct {
	pgp openpgp.EntityList
	ssh []sshKey
}

// sshKey is an SSH key, and what its comment says about it.
type sshKey struct {
	key     ssh.PublicKey
	comment string
}

// Parse reads the data of a Secret in Flux's format: names that end in .sshpub hold SSH keys, one in a line as in
// authorized_keys; all others hold an armored OpenPGP key ring. Errors: ErrKeys, which names what is wrong first, and shows none
// of it; the keys that could be read come with it.
func Parse(secret map[string][]byte) (*Keys, error) {
	keys := &Keys{}
	var first error
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		read := keys.readPGP
		if strings.HasSuffix(name, sshSuffix) {
			read = keys.readSSH
		}
		if err := read(secret[name]); err != nil && first == nil {
			first = fmt.Errorf("%w: key %s: %w", ErrKeys, name, err)
		}
	}
	if first != nil {
		return keys, first
	}
	if len(keys.pgp)+len(keys.ssh) == 0 {
		return keys, fmt.Errorf("%w: there is none: put OpenPGP keys into NAME.asc, and SSH keys into NAME%s", ErrKeys, sshSuffix)
	}
	return keys, nil
}

// armorBegin is how each armored block begins; a file may hold several, of which the reader takes the first.
var armorBegin = []byte("-----BEGIN ")

func (k *Keys) readPGP(data []byte) error {
	begin := bytes.Index(data, armorBegin)
	if _, _, _, _, err := ssh.ParseAuthorizedKey(data); begin < 0 && err == nil {
		return fmt.Errorf("it is an SSH key: name it NAME%s", sshSuffix)
	}
	if begin < 0 {
		return errNoPGP
	}
	for begin >= 0 {
		data = data[begin:]
		block := data
		if begin = bytes.Index(data[len(armorBegin):], armorBegin); begin >= 0 {
			begin += len(armorBegin)
			block = data[:begin]
		}
		if err := k.readBlock(block); err != nil {
			return err
		}
	}
	return nil
}

var errPrivate = errors.New("it is a private key: put only the public one there, and make a new one, as others may know it now")

// private reports whether a text begins like a private key.
func private(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.HasPrefix(line, armorBegin) && bytes.Contains(line, []byte("PRIVATE KEY"))
}

var errNoPGP = errors.New("it is no armored OpenPGP key, as gpg --armor --export prints it")

func (k *Keys) readBlock(block []byte) error {
	if private(block) {
		return errPrivate
	}
	list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(block))
	if err != nil || len(list) == 0 {
		return errNoPGP
	}
	for _, e := range list {
		if e.PrivateKey != nil {
			return errPrivate
		}
		if err := mayVouch(e.PrimaryKey); err != nil {
			return err
		}
	}
	for _, e := range list {
		k.take(e)
	}
	return nil
}

// take adds an OpenPGP key, or what another copy of one that is there says.
func (k *Keys) take(e *openpgp.Entity) {
	for i, known := range k.pgp {
		if bytes.Equal(known.PrimaryKey.Fingerprint, e.PrimaryKey.Fingerprint) {
			k.pgp[i] = merged(known, e)
			return
		}
	}
	k.pgp = append(k.pgp, e)
}

func (k *Keys) readSSH(data []byte) error {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimSpace(line)
		if private(line) {
			return errPrivate
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, comment, options, _, err := ssh.ParseAuthorizedKey(line)
		switch {
		case err != nil:
			return fmt.Errorf("line %d is no public SSH key, as in authorized_keys", number)
		case len(options) > 0:
			return fmt.Errorf("line %d has options before the key, such as %q, which are not looked at: remove them", number, options[0])
		}
		if err := strong(key); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		k.ssh = append(k.ssh, sshKey{key: key, comment: comment})
	}
	if number == 0 {
		return errors.New("it is empty")
	}
	return nil
}

// strong returns an error for a key that others may be able to sign for, and for kinds of keys that cannot be judged.
func strong(key ssh.PublicKey) error {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		crypto, ok := key.(ssh.CryptoPublicKey)
		if !ok {
			break
		}
		if public, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && public.N.BitLen() >= fewestBits {
			return privatekey.CheckBits(public.N.BitLen())
		}
		return fmt.Errorf("an RSA key needs %d bits", fewestBits)
	}
	return fmt.Errorf("keys of the type %s are not accepted: use ssh-ed25519", key.Type())
}

// mayVouch returns an error for an OpenPGP key that others may be able to sign for.
func mayVouch(key *packet.PublicKey) error {
	switch key.PubKeyAlgo {
	case packet.PubKeyAlgoDSA:
		return errors.New("it is a DSA key, which is too weak")
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly:
		if bits, err := key.BitLength(); err != nil || bits < fewestBits {
			return fmt.Errorf("an RSA key needs %d bits", fewestBits)
		} else if err := privatekey.CheckBits(int(bits)); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether a key is among them and may sign at a time. It is named by its fingerprint, as a Signer has it.
func (k *Keys) Has(fingerprint string, at time.Time) bool {
	for _, s := range k.ssh {
		if ssh.FingerprintSHA256(s.key) == fingerprint {
			return true
		}
	}
	for _, e := range k.pgp {
		if id, found := keyID(e, fingerprint); found {
			_, may := e.SigningKeyById(at, id)
			return may
		}
	}
	return false
}

// keyID returns the short name of the key of an entity, or its subkey, with a fingerprint.
func keyID(e *openpgp.Entity, fingerprint string) (id uint64, found bool) {
	if fingerprintOf(e.PrimaryKey) == fingerprint {
		return e.PrimaryKey.KeyId, true
	}
	for _, sub := range e.Subkeys {
		if fingerprintOf(sub.PublicKey) == fingerprint {
			return sub.PublicKey.KeyId, true
		}
	}
	return 0, false
}

// fingerprintOf returns a key's fingerprint as gpg prints it.
func fingerprintOf(key *packet.PublicKey) string {
	return strings.ToUpper(hex.EncodeToString(key.Fingerprint))
}
