package sops

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"filippo.io/age"
	agearmor "filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/flotilla-io/flotilla/internal/privatekey"
)

// ErrKeys means that a Secret does not hold private keys as it should.
var ErrKeys = errors.New("invalid private keys")

// Keys are private keys that open files. The zero value has none.
type Keys struct {
	age     []age.Identity
	pgp     openpgp.EntityList
	service Service // nil for none
}

const (
	ageSuffix = ".agekey"
	pgpSuffix = ".asc"
)

// ParseKeys reads the data of a Secret in Flux's format: names that end in .agekey hold age identities, and those that end
// in .asc armored OpenPGP keys. Those that begin with sops. are for services (see Serve), and all others for something else. Errors: ErrKeys, which names what is wrong first and
// shows none of it.
func ParseKeys(secret map[string][]byte) (*Keys, error) {
	keys, services := &Keys{}, false
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		var err error
		switch {
		case strings.HasSuffix(name, ageSuffix):
			err = keys.readAge(secret[name])
		case strings.HasSuffix(name, pgpSuffix):
			err = keys.readPGP(secret[name])
		case strings.HasPrefix(name, servicePrefix):
			services = true
		}
		if err != nil {
			return nil, fmt.Errorf("%w: key %s: %w", ErrKeys, name, err)
		}
	}
	count := len(keys.age) + len(keys.pgp)
	for _, entity := range keys.pgp {
		count += len(entity.Subkeys)
	}
	if count > maxKeys {
		return nil, fmt.Errorf("%w: there are more than %d, subkeys included, and each is tried: remove those that nothing is encrypted for", ErrKeys, maxKeys)
	}
	if count == 0 && !services {
		return nil, fmt.Errorf("%w: there is none: put age identities into NAME%s, and OpenPGP keys into NAME%s", ErrKeys, ageSuffix, pgpSuffix)
	}
	return keys, nil
}

func (k *Keys) readAge(data []byte) error {
	if bytes.Contains(data, []byte("AGE-PLUGIN-")) {
		return errors.New("it is an identity of a plugin, which would be a program: use one of age-keygen")
	}
	found, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil { // which may quote the key
		return errors.New("it is no age identity, as age-keygen prints it")
	}
	k.age = append(k.age, found...)
	return nil
}

// armorBegin is how each armored key begins; a file may hold several, of which the library takes the first.
var armorBegin = []byte("-----BEGIN PGP ")

func (k *Keys) readPGP(data []byte) error {
	blocks := bytes.Split(data, armorBegin)[1:]
	if len(blocks) == 0 {
		return errors.New("it is no armored OpenPGP key, as gpg --armor --export-secret-keys prints it")
	}
	for _, block := range blocks {
		list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(slices.Concat(armorBegin, block)))
		if err != nil {
			return errors.New("it is no armored OpenPGP key, as gpg --armor --export-secret-keys prints it")
		}
		for _, entity := range list {
			if err := usable(entity); err != nil {
				return err
			}
		}
		k.pgp = append(k.pgp, list...)
	}
	return nil
}

// usable returns an error for a key that opens nothing.
func usable(entity *openpgp.Entity) error {
	private, locked := false, false
	if key := entity.PrivateKey; key != nil && !key.Dummy() {
		private, locked = true, key.Encrypted
	}
	if err := small(entity.PrimaryKey); err != nil {
		return err
	}
	for _, sub := range entity.Subkeys {
		if err := small(sub.PublicKey); err != nil {
			return err
		}
		if key := sub.PrivateKey; key != nil && !key.Dummy() {
			private, locked = true, locked || key.Encrypted
		}
	}
	switch {
	case !private:
		return errors.New("it is a public key: export the private one with gpg --armor --export-secret-keys")
	case locked:
		return errors.New("it has a passphrase, which nobody is here to type: export it without one")
	}
	return nil
}

// small returns an error for a key that takes too long to use.
func small(key *packet.PublicKey) error {
	bits, err := key.BitLength()
	if err != nil {
		return nil //nolint:nilerr // a kind of key that has one size
	}
	return privatekey.CheckBits(int(bits))
}

// keySize is how long the key is with which the values of a file are encrypted, in bytes.
const keySize = 32

// unwrap returns the key of a part of a file.
func (o *opening) unwrap(ctx context.Context, m metadata) ([]byte, error) {
	k := o.keys
	if k == nil {
		return nil, noKey(m)
	}
	for _, r := range m.recipients {
		by := k.unwrapAge
		switch {
		case r.kind == kindAge && len(k.age) > 0:
		case r.kind == kindPGP && len(k.pgp) > 0:
			by = k.unwrapPGP
		default:
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o.tries--; o.tries < 0 {
			return nil, errTries
		}
		if key, err := by(r.wrapped); err == nil && len(key) == keySize {
			return key, nil
		}
	}
	if k.service == nil {
		return nil, noKey(m)
	}
	return o.askElsewhere(ctx, m)
}

func (k *Keys) unwrapAge(wrapped string) ([]byte, error) {
	plain, err := age.Decrypt(agearmor.NewReader(strings.NewReader(wrapped)), k.age...)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(plain, keySize+1))
}

func (k *Keys) unwrapPGP(wrapped string) (key []byte, err error) {
	defer func() {
		if recover() != nil { // the library is not sure of all that others write
			key, err = nil, errors.New("it cannot be read")
		}
	}()
	block, err := armor.Decode(strings.NewReader(wrapped))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(block.Body)
	if err != nil {
		return nil, err
	}
	if packetsIn(body) > maxPackets {
		return nil, errors.New("it holds more keys than one")
	}
	message, err := openpgp.ReadMessage(bytes.NewReader(body), k.pgp, nil, nil)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(message.UnverifiedBody, keySize+1))
}

// packetsIn counts the keys with which an OpenPGP message begins.
func packetsIn(message []byte) int {
	packets, n := packet.NewReader(bytes.NewReader(message)), 0
	for {
		p, err := packets.Next()
		if _, isKey := p.(*packet.EncryptedKey); err != nil || !isKey {
			return n
		}
		n++
	}
}

// Names returns what the public halves of the keys are called, as in the recipients of a file.
func (k *Keys) Names() []string {
	var out []string
	for _, identity := range k.age {
		switch identity := identity.(type) {
		case *age.X25519Identity:
			out = append(out, identity.Recipient().String())
		case *age.HybridIdentity:
			out = append(out, identity.Recipient().String())
		}
	}
	for _, entity := range k.pgp {
		out = append(out, "PGP "+strings.ToUpper(hex.EncodeToString(entity.PrimaryKey.Fingerprint)))
	}
	return out
}
