package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/controlplane/aggregated"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/bootstrap"
	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/disk"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/fence"
	"github.com/flotilla-io/flotilla/controlplane/housekeeping"
	"github.com/flotilla-io/flotilla/controlplane/pki"
	"github.com/flotilla-io/flotilla/controlplane/proxy"
	"github.com/flotilla-io/flotilla/controlplane/seal"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// ControlPlane is a server that is built and holds its folder and port, but
// answers only while Run runs.
type ControlPlane struct {
	// Opened is the number of the store's last write when it was opened: what the control
	// plane has written since is not in it. It is 0 for a store that runs elsewhere, which
	// others may write; whoever has the loops run elsewhere sets it to 0 before Run.
	Opened int64
	// Place identifies its store: for one of its own its folder, which a copy of that
	// is not, and for one that runs elsewhere the etcd that it is.
	Place string

	opts   Options
	dir    *datadir.Dir
	store  *etcd.Server // nil if the store runs elsewhere
	relay  *fence.Relay // to the store that does
	pki    *pki.Store
	vault  *seal.Vault // nil if the store is this control plane's own
	server *apiserver.Server
	kinds  *aggregated.Kinds
	quotas *admission.Quotas // nil if they are ignored
	disk   *disk.Disk        // nil if it is not watched
	reach  *proxy.Proxy      // to clusters
	ready  chan struct{}
	isUp   atomic.Bool
	close  sync.Once
}

// Loops work on the server until ctx ends. hub may do everything and is not
// throttled.
type Loops func(ctx context.Context, hub *rest.Config) error

// New takes the folder, starts the store, and opens the port. What it returns
// must be run or closed.
//
// Errors: datadir.ErrInUse if another process holds the folder, syscall.ENOSPC if its disk
// has no room for a first start.
func New(ctx context.Context, opts Options) (*ControlPlane, error) {
	opts.complete()
	c := &ControlPlane{opts: opts, ready: make(chan struct{})}
	if err := c.build(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return c, nil
}

func (c *ControlPlane) build(ctx context.Context) error {
	if c.opts.DataDir == "" {
		return errors.New("no data directory")
	}
	var err error
	if c.dir, err = datadir.Open(c.opts.DataDir); err != nil {
		return err
	}
	if err := checkFirstSpace(c.dir, c.opts); err != nil {
		return err
	}
	if c.opts.Hooks.Starting != nil {
		c.opts.Hooks.Starting()
	}
	c.disk = watchDisk(c.dir, c.opts, func() *etcd.Server { return c.store })
	if c.pki, c.vault, err = openPKI(ctx, c.dir, c.opts); err != nil {
		return err
	}
	if err := c.openStore(ctx); err != nil {
		return err
	}
	if !c.opts.Rules.IgnoreQuotas {
		c.quotas = admission.NewQuotas()
	}
	if c.server, err = apiserver.New(ctx, c.serverOptions()); err != nil {
		return err
	}
	return c.pki.WriteKubeconfig(c.KubeconfigFile(), pki.Kubeconfig{
		Context:  Context,
		Also:     []string{KarmadaContext},
		Server:   c.server.URL(),
		Identity: pki.Identity{User: "system:admin", Groups: []string{"system:masters"}},
	})
}

// DiskFull returns why nothing more should be stored in the data directory; nil while there is space.
func (c *ControlPlane) DiskFull() error { return c.disk.State().Err() }

// openStore starts the control plane's own store, or a relay to the one elsewhere.
// Both refuse what an epoch that is over would write.
func (c *ControlPlane) openStore(ctx context.Context) error {
	epoch := fence.Key(c.opts.Etcd.Prefix)
	if elsewhere := c.opts.Etcd; len(elsewhere.Servers) > 0 {
		client, err := etcd.Connect(addressOf(elsewhere))
		if err != nil {
			return err
		}
		if c.Place, err = etcd.Place(ctx, client); err != nil {
			return errors.Join(err, client.Close())
		}
		if c.relay, err = fence.NewRelay(ctx, client, c.dir.Path("apiserver"), epoch); err != nil {
			return err
		}
		c.opts.Etcd = apiserver.Etcd{Servers: c.relay.Endpoints(), Prefix: elsewhere.Prefix}
		return nil
	}
	var err error
	if c.store, err = etcd.Start(ctx, etcd.Options{
		DataDir: c.dir.Path("etcd"), Log: c.opts.Log, UnsafeNoFsync: c.opts.UnsafeNoFsync,
		Intercept: fence.Interceptor(epoch),
	}); err != nil {
		return err
	}
	if err := filled(ctx, c.store, c.disk, c.opts.Etcd.Prefix); err != nil {
		return err
	}
	if c.Opened, err = c.store.Revision(ctx); err != nil {
		return fmt.Errorf("read the revision of the store: %w", err)
	}
	if c.Place, err = tenure.Place(c.opts.DataDir); err != nil {
		return err
	}
	c.opts.Etcd.Servers = c.store.Endpoints()
	return nil
}

func (c *ControlPlane) serverOptions() apiserver.Options {
	out := apiserver.Options{
		DataDir:          c.dir.Path("apiserver"),
		PKI:              c.pki,
		Etcd:             c.opts.Etcd,
		BindAddress:      c.opts.BindAddress,
		SecurePort:       c.opts.SecurePort,
		Hosts:            c.opts.Hosts,
		DisableAdmission: templatesAreNotRun,
		ReadyChecks:      []healthz.HealthChecker{healthz.NamedCheck("flotilla", c.check)},
		FeatureGates:     c.opts.FeatureGates,
		ExpiredAgents:    c.opts.Certificates.ExpiredGrace,
		Requests:         apiserver.Requests{Busy: c.opts.Hooks.Busy, Up: c.ready},
		Pages:            map[string]http.Handler{clusterv1alpha1.OpenedPath: page(func() any { return c.Opened }, time.Now())},
	}
	if c.store != nil && c.disk != nil {
		out.Requests.Notice = func() string { return c.disk.Last().Text }
		out.Admission = append(out.Admission, apiserver.Plugin{Name: "FlotillaRoom", Interface: admission.NewStorage(c.disk.State)})
	}
	c.reach = c.newProxy()
	c.kinds = extend(&out, c.opts, c.quotas, c.reach)
	return out
}

// check is the part of /readyz that is not the server's own.
func (c *ControlPlane) check(*http.Request) error {
	if !c.isUp.Load() {
		return errors.New("the control plane is not up")
	}
	return nil
}

// page answers with the messages since a time.
func page(says func() any, since time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Last-Modified", since.UTC().Format(http.TimeFormat))
		_, _ = fmt.Fprint(w, says()) // who asked may have gone
	}
}

// KubeconfigFile is the administrator's kubeconfig. It is written by New.
func (c *ControlPlane) KubeconfigFile() string { return c.dir.Path("admin.kubeconfig") }

// URL is where clients on this machine find the server.
func (c *ControlPlane) URL() string { return c.server.URL() }

// Config is for clients inside this process; see apiserver.Server.
func (c *ControlPlane) Config() *rest.Config { return c.server.LoopbackConfig() }

// Ready is closed once every kind is served and housekeeping runs.
func (c *ControlPlane) Ready() <-chan struct{} { return c.ready }

// Kinds are those that the server has in memory with their Go types, for clients
// inside this process: they share objects with it, and watch without requests.
func (c *ControlPlane) Kinds() *aggregated.Kinds { return c.kinds }

// Revision is the number of the store's last write. It is 0 for a store that
// runs elsewhere.
func (c *ControlPlane) Revision(ctx context.Context) (int64, error) {
	if c.store == nil {
		return 0, nil
	}
	return c.store.Revision(ctx)
}

// Written lists the keys of the store that were written after a revision; see
// etcd.Server. It is empty for a store that runs elsewhere.
func (c *ControlPlane) Written(ctx context.Context, after int64) ([]string, error) {
	if c.store == nil {
		return nil, nil
	}
	return c.store.Written(ctx, after)
}

// Run serves until ctx ends or a part fails, then stops the loops, the server
// and the store in this order, and gives up the folder. The loops start once
// the control plane is ready. It may be called once.
func (c *ControlPlane) Run(ctx context.Context, loops ...Loops) error {
	defer c.Close()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx by the loops' last writes
	served := make(chan error, 1)
	go func() { served <- c.server.Run(serving) }()

	working, stopWorking := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- c.work(working, loops) }()

	var err error
	select {
	case err = <-worked:
		stopWorking()
		stopServing()
		err = errors.Join(err, <-served)
	case err = <-served:
		stopWorking()
		stopServing()
		err = errors.Join(err, <-worked)
	}
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	return nil
}

// work brings the server up and runs what works on it, until ctx ends, which is
// no error.
func (c *ControlPlane) work(ctx context.Context, loops []Loops) error {
	if err := c.bringUp(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while starting
		}
		return c.disk.Explain(err)
	}
	parts := []part{
		{"certificates", c.renew},
		{"store", func(ctx context.Context) error { return watchStore(ctx, c.store) }},
		{"disk", c.disk.Run},
		{"housekeeping", c.keepHouse},
		{"proxy", c.reach.Run},
	}
	if c.quotas != nil {
		parts = append(parts, part{"quotas", func(ctx context.Context) error { return c.quotas.Run(ctx, c.Config()) }})
	}
	for _, loop := range loops {
		parts = append(parts, part{"loops", func(ctx context.Context) error { return loop(ctx, c.Config()) }})
	}
	defer c.isUp.Store(false)
	return runAll(ctx, parts, func() {
		c.isUp.Store(true)
		close(c.ready)
	})
}

// A part runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// runAll runs the parts until ctx ends or one of them does, and waits for all.
// A part that ends by itself is an error, a part that is stopped is none.
func runAll(ctx context.Context, parts []part, started func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error)
	for _, p := range parts {
		go func() {
			err := p.run(ctx)
			switch {
			case ctx.Err() != nil:
				done <- nil
			case err != nil:
				done <- fmt.Errorf("%s: %w", p.name, err)
			default:
				done <- fmt.Errorf("%s: ended by itself", p.name)
			}
		}()
	}
	started()
	var errs []error
	for range parts {
		errs = append(errs, <-done)
		stop() // a control plane that lacks a part is none
	}
	return errors.Join(errs...)
}

func (c *ControlPlane) bringUp(ctx context.Context) error {
	if err := c.server.WaitOpen(ctx); err != nil {
		return err
	}
	if err := bootstrap.Definitions(ctx, c.Config(), c.opts.Definitions); err != nil {
		return err
	}
	if err := bootstrap.Objects(ctx, c.Config()); err != nil {
		return err
	}
	err := bootstrap.Publish(ctx, c.Config(), bootstrap.Facts{
		Server: c.publicURL(), CAFile: c.pki.CAFile(), Version: c.opts.Version, Place: c.Place, Replicas: c.store == nil,
	})
	if err != nil {
		return err
	}
	return c.server.WaitServing(ctx)
}

// publicURL is where clients on other machines find the server, as far as that is
// known.
func (c *ControlPlane) publicURL() string {
	if len(c.opts.Hosts) == 0 {
		return c.server.URL()
	}
	return "https://" + net.JoinHostPort(c.opts.Hosts[0], strconv.Itoa(c.server.Port()))
}

func (c *ControlPlane) renew(ctx context.Context) error {
	c.pki.Run(ctx, func(err error) { c.opts.Log.Error(err, "certificates are not renewed") })
	return nil
}

func (c *ControlPlane) keepHouse(ctx context.Context) error {
	return housekeeping.RunControllers(ctx, housekeeping.ControllerOptions{
		Config:                c.Config(),
		ServiceAccountKeyFile: c.pki.ServiceAccountKeyFile(),
		RootCAFile:            c.pki.CAFile(),
		SigningCertFile:       c.pki.SignerCAFile(),
		SigningKeyFile:        c.pki.CAKeyFile(),
		SigningDuration:       c.opts.Certificates.Duration,
	})
}

// Close gives up what New took, for a control plane that is not run. It may be
// called twice.
func (c *ControlPlane) Close() {
	c.close.Do(func() {
		if c.store != nil {
			c.store.Stop()
		}
		if c.relay != nil {
			_ = c.relay.Close() // the server is gone, and nothing is left to be handed on
		}
		if c.vault != nil {
			_ = c.vault.Close() // nothing is left to be written
		}
		if c.dir != nil {
			c.dir.Close()
		}
	})
}

// openPKI makes or finds authorities and keys: those of all replicas where the store
// may have several, and then the vault that they are in.
func openPKI(ctx context.Context, dir *datadir.Dir, opts Options) (*pki.Store, *seal.Vault, error) {
	elsewhere := opts.Etcd
	if len(elsewhere.Servers) == 0 {
		store, err := pki.Open(dir.Path("pki"), opts.Clock)
		return store, nil, err
	}
	vault, err := seal.New(seal.Options{
		Address: addressOf(elsewhere), Prefix: elsewhere.Prefix,
		SealKeyFile: cmp.Or(opts.SealKeyFile, dir.Path("seal.key")), Log: opts.Log,
	})
	if err != nil {
		return nil, nil, err
	}
	store, err := pki.OpenCommon(ctx, dir.Path("pki"), opts.Clock, vault)
	return store, vault, err
}

func addressOf(e apiserver.Etcd) etcd.Address {
	return etcd.Address{Servers: e.Servers, CAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}
}
