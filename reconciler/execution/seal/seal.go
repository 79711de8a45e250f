// Package seal distinguishes the records of what was applied that an agent wrote itself from
// those that others wrote with its credentials. In go the records of a Work's status, out come
// those that count. It works with a message authentication code: whoever has an agent's token can write
// the status on the hub, but does not have the key in the agent's folder.
package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

const (
	keyFile = "records.key"
	keySize = 32 // bytes
	macSize = 15 // bytes, which base64 writes without padding
	// separator stands between a hash and its seal.
	separator = "."
)

// Seal signs and verifies records. The zero value is for a program that is the only one to write them:
// it signs none, and accepts all.
type Seal struct{ key []byte }

// New returns a seal with a key.
func New(key []byte) Seal { return Seal{key} }

// Load returns the seal with the key in a folder. It creates the key if there is none, or none of the right size.
func Load(folder string) (Seal, error) {
	path := filepath.Join(folder, keyFile)
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == keySize:
		return New(key), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Seal{}, fmt.Errorf("read the key of records: %w", err)
	}
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // never returns an error
	whole := path + ".new"
	if err := errors.Join(os.WriteFile(whole, key, 0o600), os.Rename(whole, path)); err != nil {
		return Seal{}, fmt.Errorf("keep the key of records: %w", err)
	}
	return New(key), nil
}

// Closed returns records with their seals, in the form for the Work's status.
func (s Seal) Closed(records []workv1alpha1.AppliedHash) []workv1alpha1.AppliedHash {
	if s.key == nil {
		return records
	}
	out := make([]workv1alpha1.AppliedHash, 0, len(records))
	for _, r := range records {
		r.Observed += separator + s.of(r)
		out = append(out, r)
	}
	return out
}

// Opened returns those of a Work's records whose seals are valid, without the seals.
func (s Seal) Opened(records []workv1alpha1.AppliedHash) []workv1alpha1.AppliedHash {
	out := make([]workv1alpha1.AppliedHash, 0, len(records))
	for _, r := range records {
		var says string
		r.Observed, says, _ = strings.Cut(r.Observed, separator)
		if s.key == nil || hmac.Equal([]byte(says), []byte(s.of(r))) {
			out = append(out, r)
		}
	}
	return out
}

// of returns the seal of a record. It need not name the Work: that an object with the hash Observed is the result of
// the manifest with the hash Desired is true for any Work to which somebody might copy the record.
func (s Seal) of(r workv1alpha1.AppliedHash) string {
	mac := hmac.New(sha256.New, s.key)
	_, _ = fmt.Fprintf(mac, "%q %q %t %d", r.Desired, r.Observed, r.Replicas != nil, ptr.Deref(r.Replicas, 0))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:macSize])
}
