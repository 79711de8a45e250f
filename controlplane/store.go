package controlplane

import (
	"context"

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
