package bucket

import (
	"context"
	"crypto/sha256"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/sources/s3"
)

// remote reads one bucket, with the errors of package s3.
type remote interface {
	List(ctx context.Context, prefix string) ([]s3.Object, error)
	Get(ctx context.Context, o s3.Object) ([]byte, error)
	Find(ctx context.Context, key, unless string, limit int64) (content []byte, version string, err error)
	Close()
}

// known is what is known of a bucket since the last reconciles. One reconcile at a time has it.
type known struct {
	print  print
	remote remote
	// rules is the .sourceignore in the root of the bucket, and rulesVersion its version; empty for none.
	rules        []byte
	rulesVersion string
	// digest names an artifact, revision what it was made of, and versions those of the objects in that, by key.
	digest, revision string
	versions         map[string]string
}

// made records what an artifact was made of.
func (k *known) made(digest, revision string, objects []s3.Object) {
	if k.digest == digest && k.revision == revision {
		return
	}
	k.digest, k.revision, k.versions = digest, revision, make(map[string]string, len(objects))
	for _, o := range objects {
		k.versions[o.Key] = o.Version()
	}
}

// print is a digest of all that a Remote is made from.
type print [sha256.Size]byte

// memory has what is known of each source. The zero value knows nothing: after a start, the first list says what the artifact of
// its revision was made of.
type memory struct {
	mu  sync.Mutex
	all map[client.ObjectKey]*known
}

// of returns what is known of a source, which is nothing if what its Remote is made from has changed.
func (m *memory) of(key client.ObjectKey, print print, make func() (remote, error)) (*known, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, found := m.all[key]
	if found && have.print == print {
		return have, nil
	}
	remote, err := make()
	if err != nil {
		return nil, err
	}
	if found {
		have.remote.Close()
	}
	if m.all == nil {
		m.all = map[client.ObjectKey]*known{}
	}
	m.all[key] = &known{print: print, remote: remote}
	return m.all[key], nil
}

// forget drops what is known of a source that is gone.
func (m *memory) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, found := m.all[key]; found {
		have.remote.Close()
		delete(m.all, key)
	}
}
