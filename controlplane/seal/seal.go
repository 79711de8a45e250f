package seal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/internal/durable"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// timeout is how long one request to the store may take.
const timeout = 30 * time.Second

// DefaultPrefix is the path of a store's keys unless another one is given.
const DefaultPrefix = "/registry"

// Options say where what is sealed lies, and what seals it.
type Options struct {
	// Address is the store's.
	Address etcd.Address
	// Prefix is the path of all keys of the control plane; empty means DefaultPrefix.
	Prefix string
	// SealKeyFile is the file of the key. It is made if nothing is sealed yet.
	SealKeyFile string
	// Log is called when a key was made.
	Log logr.Logger
	// Listening is how long Heard listens; zero means long enough for whoever leads
	// to say what time it is.
	Listening time.Duration
}

// Vault is the place in the store. It implements pki.Common. Close it.
type Vault struct {
	client *clientv3.Client
	place  string // the key in the store
	lease  string // that of the Lease of whoever leads
	listen time.Duration
	file   string
	log    logr.Logger
	key    *key // once it was needed
}

// New returns the vault of a store. It sends nothing.
func New(o Options) (*Vault, error) {
	client, err := etcd.Connect(o.Address)
	if err != nil {
		return nil, err
	}
	prefix := o.Prefix
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return &Vault{
		client: client, file: o.SealKeyFile, log: o.Log, listen: cmp.Or(o.Listening, listening),
		place: path.Join("/", prefix, "flotilla.io/pki"), lease: path.Join("/", prefix, "leases", tenure.Namespace, tenure.LeaseName),
	}, nil
}

// Close ends the connection to the store.
func (v *Vault) Close() error { return v.client.Close() }

// Load returns what is sealed, and the number of its version; nil and 0 if there is
// nothing yet. Errors say which file has to be copied from where, if it is the key
// that is missing or another one.
func (v *Vault) Load(ctx context.Context) (map[string][]byte, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := v.client.Get(ctx, v.place)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s from the store at %s: %w", v.place, strings.Join(v.client.Endpoints(), ", "), err)
	}
	if len(answer.Kvs) == 0 {
		return nil, 0, nil
	}
	plain, err := v.open(answer.Kvs[0].Value)
	if err != nil {
		return nil, 0, err
	}
	files := map[string][]byte{}
	if err := json.Unmarshal(plain, &files); err != nil {
		return nil, 0, fmt.Errorf("read %s from the store: %w", v.place, errBroken)
	}
	return files, answer.Kvs[0].ModRevision, nil
}

func (v *Vault) open(content []byte) ([]byte, error) {
	b, err := readBox(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.place, err)
	}
	k, err := v.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the store holds the control plane's keys, sealed with key %s, and there is no file %s: "+
			"copy it from a machine of another replica (--seal-key-file)", b.KeyID, v.file)
	}
	if err != nil {
		return nil, err
	}
	if k.id() != b.KeyID {
		return nil, fmt.Errorf("the control plane's keys in the store are sealed with key %s, and %s holds key %s: "+
			"copy the file of another replica over it (--seal-key-file); nothing was changed", b.KeyID, v.file, k.id())
	}
	plain, err := b.open(*k, v.place)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.place, err)
	}
	return plain, nil
}

// Save puts files in the place of the version that was loaded, 0 for nothing. It
// says false, and leaves what is there, if that is of another version by now. The
// key is made if nothing was there and it has no file; it goes again if it has sealed
// nothing, neither here nor for another server that was given the same file.
func (v *Vault) Save(ctx context.Context, files map[string][]byte, version int64) (saved bool, err error) {
	k, err := v.read()
	made := errors.Is(err, fs.ErrNotExist) && version == 0
	if made {
		k, err = v.make()
	}
	if errors.Is(err, fs.ErrExist) { // another server has just made it, from the same flag
		made = false
		k, err = v.read()
	}
	if err == nil && version == 0 && !made { // whoever made the file may not have got further than its name
		if err = durable.SyncDir(filepath.Dir(v.file)); err != nil {
			err = fmt.Errorf("seal key: %w", err)
		}
	}
	if err != nil {
		return false, err
	}
	plain, err := json.Marshal(files)
	if err != nil {
		return false, fmt.Errorf("encode what is to be sealed: %w", err)
	}
	sealed, err := k.seal(plain, v.place)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := v.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(v.place), "=", version)).
		Then(clientv3.OpPut(v.place, string(sealed))).
		Else(clientv3.OpGet(v.place)).Commit()
	if err != nil {
		return false, fmt.Errorf("write %s to the store: %w", v.place, err) // the key stays: it may have sealed
	}
	if made && !answer.Succeeded {
		return false, v.unmake(answer)
	}
	if made {
		v.log.Info("the control plane's keys are in the store now, sealed: copy this file to each machine that is to run a replica, and keep a copy elsewhere", "sealKeyFile", v.file)
	}
	return answer.Succeeded, nil
}

// unmake removes a key that was made in vain: somebody was faster. If that somebody
// read it from the same file, it is what the store is sealed with, and stays.
func (v *Vault) unmake(answer *clientv3.TxnResponse) error {
	for _, found := range answer.Responses[0].GetResponseRange().Kvs {
		if b, err := readBox(found.Value); err != nil || b.KeyID == v.key.id() {
			return nil //nolint:nilerr // Load reports it; a key is not removed on a guess
		}
	}
	v.key = nil
	return os.Remove(v.file)
}

func (v *Vault) read() (*key, error) {
	if v.key != nil {
		return v.key, nil
	}
	k, err := readKey(v.file)
	if err != nil {
		return nil, err
	}
	v.key = &k
	return v.key, nil
}

func (v *Vault) make() (*key, error) {
	k, err := makeKey(v.file)
	if err != nil {
		return nil, err
	}
	v.key = &k
	return v.key, nil
}
