package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/disk"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
)

// watchStore returns when the control plane's own store has failed; nil is one that
// runs elsewhere.
func watchStore(ctx context.Context, store *etcd.Server) error {
	if store == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case err := <-store.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}

// watchDisk begins to look for room in the folder, where a reserve of an earlier run
// gives way if there is none; nil is returned if nobody is to look. The store is
// asked for once it runs.
func watchDisk(dir *datadir.Dir, opts Options, store func() *etcd.Server) *disk.Disk {
	if opts.Rules.MinFreeDisk == 0 {
		return nil
	}
	o := disk.Options{Dir: dir.Path(), Minimum: opts.Rules.MinFreeDisk, Log: opts.Log, Clock: opts.Clock}
	if len(opts.Etcd.Servers) == 0 {
		o.Database = etcd.Database(dir.Path("etcd"))
		o.Relieve = func(ctx context.Context) (bool, error) { return store().Relieve(ctx) }
	}
	out := disk.New(o)
	out.Start()
	return out
}

// checkFirstSpace returns why a control plane is not started for the first time: where there is no
// space for all that its own store gets then, the server would end the process.
func checkFirstSpace(dir *datadir.Dir, opts Options) error {
	_, err := os.Stat(etcd.Database(dir.Path("etcd")))
	if len(opts.Etcd.Servers) > 0 || !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := disk.First(dir.Path(), opts.Rules.MinFreeDisk); err != nil {
		return fmt.Errorf("data directory %s: %w", dir.Path(), err)
	}
	return nil
}

// filled errs if there is no room for what the store still has to be given, as the starts
// before this one did not get that far.
func filled(ctx context.Context, store *etcd.Server, space *disk.Disk, prefix string) error {
	state := space.State()
	if state.Level == disk.Plenty {
		return nil
	}
	last := path.Join("/", cmp.Or(prefix, "/registry"), "configmaps", metav1.NamespacePublic, bootstrapapi.ConfigMapClusterInfo)
	has, err := store.Has(ctx, last) // what bootstrap writes last
	if err != nil || has {
		return err
	}
	return space.Explain(state.Err())
}
