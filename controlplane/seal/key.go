package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flotilla-io/flotilla/internal/durable"
)

// keyBytes is the length of a key, of AES-256.
const keyBytes = 32

// keyPrefix begins a key file, for whoever looks into one.
const keyPrefix = "flotilla-seal-key-v1:"

// errNoKey says that a file holds no key of ours.
var errNoKey = errors.New("holds no seal key")

// errBroken says that what is sealed was changed, or is of another place.
var errBroken = errors.New("what is sealed in the store was changed or was copied from another place")

// key seals and opens.
type key struct{ secret []byte }

// id distinguishes keys and reveals nothing about them.
func (k key) id() string {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte("flotilla seal key id"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// errExposed says that others than its owner may read or replace a key file.
var errExposed = errors.New("others than its owner may read or replace")

// exposed are the modes of a file that others than its owner and its group may read, or
// than its owner may write. A group may read it: a Secret's volume gives a file to a
// process that is not root by its group, and nobody else is in that.
const exposed fs.FileMode = 0o026

// maxKeyFile is more than a key file has.
const maxKeyFile = 4 << 10

// readKey reads a key file. Errors: fs.ErrNotExist, errExposed, errNoKey.
func readKey(file string) (key, error) {
	content, mode, err := read(file)
	if err != nil {
		return key{}, fmt.Errorf("seal key: %w", err)
	}
	if mode&exposed != 0 {
		return key{}, fmt.Errorf("seal key: %w %s (mode %04o): chmod 600 %s, or defaultMode: 0440 where a Secret's volume holds it", errExposed, file, mode, file)
	}
	encoded, ours := bytes.CutPrefix(bytes.TrimSpace(content), []byte(keyPrefix))
	secret, err := base64.StdEncoding.DecodeString(string(encoded))
	if !ours || err != nil || len(secret) != keyBytes {
		return key{}, fmt.Errorf("seal key: %s %w", file, errNoKey)
	}
	return key{secret}, nil
}

// read returns what a file holds, and who may read and write it.
func read(file string) ([]byte, fs.FileMode, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	is, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	return content, is.Mode().Perm(), err
}

// makeKey makes a key and its file, which whoever reads it sees whole, and which is
// there for good before anything is sealed with it. A file that is there is an error:
// fs.ErrExist.
func makeKey(file string) (key, error) {
	k := key{make([]byte, keyBytes)}
	if _, err := rand.Read(k.secret); err != nil {
		return key{}, fmt.Errorf("seal key: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(file)); err != nil {
		return key{}, fmt.Errorf("seal key: %w", err)
	}
	if err := k.write(file); err != nil {
		return key{}, fmt.Errorf("seal key: %w", err)
	}
	return k, nil
}

// write puts the key into a new file.
func (k key) write(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(keyPrefix + base64.StdEncoding.EncodeToString(k.secret) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), file); err != nil { // unlike a rename, it replaces nothing
		return err
	}
	return durable.SyncDir(filepath.Dir(file))
}

// box is what the store holds. What is sealed opens at its own place alone.
type box struct {
	Version int    `json:"version"`
	KeyID   string `json:"keyID"`
	Nonce   []byte `json:"nonce"`
	Sealed  []byte `json:"sealed"`
}

// boxVersion is the only one there is.
const boxVersion = 1

func (k key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal encrypts plain for a place.
func (k key) seal(plain []byte, place string) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	b := box{Version: boxVersion, KeyID: k.id(), Nonce: make([]byte, aead.NonceSize())}
	if _, err := rand.Read(b.Nonce); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	b.Sealed = aead.Seal(nil, b.Nonce, plain, b.about(place))
	return json.Marshal(b)
}

// readBox reads what the store holds, without opening it.
func readBox(content []byte) (box, error) {
	b := box{}
	if err := json.Unmarshal(content, &b); err != nil || b.Version != boxVersion {
		return box{}, fmt.Errorf("%w: it is of no version that this program knows", errBroken)
	}
	return b, nil
}

// open decrypts. The box must be of this key.
func (b box) open(k key, place string) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if len(b.Nonce) != aead.NonceSize() {
		return nil, errBroken
	}
	plain, err := aead.Open(nil, b.Nonce, b.Sealed, b.about(place))
	if err != nil {
		return nil, errBroken
	}
	return plain, nil
}

// about is what is authenticated with what is sealed.
func (b box) about(place string) []byte {
	return fmt.Appendf(nil, "flotilla pki %d %s %q", b.Version, b.KeyID, place)
}
