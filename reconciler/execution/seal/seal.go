// Package seal distinguishes the records of what was applied that a program wrote itself from
// those that others wrote in its name. In go the records of a Work's status, out come
// those that count. It never asks a cluster: whoever has the token of an agent can write
// what stands in the hub, and has no way to the key in the agent's folder.
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
	// separator begins the seal, after the hash that it is for.
	separator = "."
)

// Seal proves records. The zero value is for whoever is the only one that can write them:
// it seals none, and takes all.
type Seal struct{ key []byte }

// New returns a seal with a key.
func New(key []byte) Seal { return Seal{key} }

// Load returns the seal of a folder, which has its key from then on.
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
	_, _ = rand.Read(key) // never errs
	whole := path + ".new"
	if err := errors.Join(os.WriteFile(whole, key, 0o600), os.Rename(whole, path)); err != nil {
		return Seal{}, fmt.Errorf("keep the key of records: %w", err)
	}
	return New(key), nil
}

// Closed returns records as they are to stand in the Work.
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

// Opened returns those of a Work's records that count, as they were before Closed.
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

// of is the seal of a record. What it proves is true wherever it is repeated: that an
// object that is as Observed says is what became of the manifest that Desired says.
func (s Seal) of(r workv1alpha1.AppliedHash) string {
	mac := hmac.New(sha256.New, s.key)
	_, _ = fmt.Fprintf(mac, "%q %q %t %d", r.Desired, r.Observed, r.Replicas != nil, ptr.Deref(r.Replicas, 0))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:macSize])
}
