package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/agent/credentials"
	"github.com/flotilla-io/flotilla/agent/diskcache"
	"github.com/flotilla-io/flotilla/agent/heartbeat"
	"github.com/flotilla-io/flotilla/agent/hubconn"
	"github.com/flotilla-io/flotilla/agent/kinds"
	"github.com/flotilla-io/flotilla/agent/selfregistration"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/internal/telemetry"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// agent has the state that the parts of the program share.
type agent struct {
	options     *options
	log         logr.Logger
	scheme      *runtime.Scheme
	keeper      *credentials.Keeper
	conn        *hubconn.Connection
	cache       *diskcache.Cache
	checker     *setback.Checker
	memberLease *tenure.MemberLease // held by the one agent that acts in the member
	offer       *offer              // releases the Lease for other agents
	soon        chan struct{}       // requests a heartbeat at once
	hub         *rest.Config        // through the link
	member      *rest.Config
	mgr         ctrl.Manager
	back        func()                     // wakes the loops when the hub is back
	answers     func(context.Context) bool // reports whether the member answers
	awake       atomic.Bool
}

// run runs the agent until ctx ends. When another agent acts in the cluster it starts over
// and waits.
func (o *options) run(ctx context.Context, log logr.Logger) error {
	if err := command.Free(ctx, o.listening()); err != nil { // a token can be used once
		return err
	}
	for {
		err := o.once(ctx, log)
		if !heldByOther(err) || ctx.Err() != nil {
			return command.Taken(err, o.listening())
		}
		log.Info("The loops have stopped", "reason", err.Error())
	}
}

// listening returns the addresses at which the agent serves, by the names of their flags.
func (o *options) listening() map[string]string {
	return map[string]string{"metrics-bind-address": o.metrics, "health-probe-bind-address": o.health}
}

// once runs the agent until ctx ends, or another agent acts in the cluster.
func (o *options) once(ctx context.Context, log logr.Logger) error {
	ctx = logr.NewContext(ctx, log)
	a := &agent{options: o, log: log, scheme: kinds.Scheme(), back: func() {}, soon: make(chan struct{}, 1)}
	var err error
	if a.member, err = readConfig("--kubeconfig", o.member.kubeconfig, o.member.context); err != nil {
		return err
	}
	if err := o.enroll(ctx, a.member); err != nil {
		return err
	}
	way, err := readConfig("--karmada-kubeconfig", o.hubFile(), o.hub.context)
	if err != nil {
		return err
	}
	if err := a.open(way); err != nil {
		return err
	}
	defer func() { _ = a.cache.Close() }()
	leave, err := a.compete(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := a.awaitLease(ctx); err != nil {
		return nil // ctx ended
	}
	a.offer = &offer{memberLease: a.memberLease, refused: func() bool { return errors.Is(a.conn.Away(), hubconn.ErrRefused) }}
	if err := a.wire(ctx); err != nil {
		return err
	}
	return a.start(ctx)
}

// open opens the data folder, the certificate, and the connection to the hub.
func (a *agent) open(way *rest.Config) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	a.keeper, err = credentials.New(way, credentials.Options{
		Cluster: a.options.clusterName, Context: a.options.hub.context, Store: store,
		Threshold: a.options.hub.threshold, Interval: a.options.hub.checking,
		Skew: func() time.Duration { return a.conn.Skew() }, Renewed: func() { a.conn.Hint() },
	})
	if err != nil {
		return err
	}
	a.hub = hub.Unlimited(a.keeper.Config())
	a.hub.UserAgent = "flotilla-agent/" + telemetry.BuildVersion(a.options.version).Program
	first := rest.CopyConfig(a.hub) // for requests before the connection lets anything through
	probe, err := rest.TransportFor(a.hub)
	if err != nil {
		return fmt.Errorf("set up the connection to the hub: %w", err)
	}
	a.cache, err = diskcache.Open(diskcache.Options{
		Dir: a.options.dataDir, Scheme: a.scheme, Log: a.log,
		Back: func(kind schema.GroupVersionKind) <-chan struct{} {
			if kind.Group == workv1alpha1.GroupName {
				return a.conn.Whole()
			}
			return a.conn.Back()
		},
		Anew: func() int { return a.conn.HoldCount() },
		Trust: func(ctx context.Context) error {
			err := a.checker.Trust(ctx, a.conn.Identity())
			if errors.Is(err, setback.ErrOlder) {
				a.memberLease.Yield() // this agent writes nothing without the hub; another one may know more
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	known, err := a.cache.Hub()
	if err != nil {
		return errors.Join(fmt.Errorf("%w: remove %s to start anew, once the hub is there", err, a.options.dataDir), a.cache.Close())
	}
	a.conn = hubconn.New(hubconn.Options{
		Server: a.hub.Host, Probe: probe, Known: known, Learned: a.cache.Learn, LongestPause: a.options.hub.pause,
		Meet: func(ctx context.Context, system *metav1.PartialObjectMetadata) error {
			return a.checker.Meet(ctx, system)
		},
		Refuses: func(req *http.Request) bool {
			return strings.Contains(req.URL.Path, "/apis/"+workv1alpha1.GroupName+"/")
		},
	})
	a.conn.OnChange(a.changed)
	a.hub.Wrap(a.conn.Wrap)
	return a.compare(first)
}

// compare sets up the check that compares the hub with what the member has seen of it.
func (a *agent) compare(first *rest.Config) error {
	early, err := a.client(first)
	if err != nil {
		return fmt.Errorf("set up the connection to the hub: %w", err)
	}
	asks, err := a.client(a.hub)
	if err != nil {
		return fmt.Errorf("set up the connection to the hub: %w", err)
	}
	member, err := a.client(a.member)
	if err != nil {
		return fmt.Errorf("set up the connection to the member: %w", err)
	}
	a.checker = setback.NewChecker(setback.CheckerOptions{Cluster: a.options.clusterName, Hub: early, Asks: asks, Member: member, Opened: setback.Opened(first), Folder: a.cache})
	a.checker.OnChange(func() {
		a.conn.Hint()
		select {
		case a.soon <- struct{}{}:
		default:
		}
	})
	return nil
}

// note returns the annotation of each heartbeat: up to where the member has seen the hub's
// store.
func (a *agent) note() map[string]string {
	text := ""
	if report, ok := a.checker.Report(); ok {
		text = report.Encode()
	}
	return map[string]string{clusterv1alpha1.MarkAnnotation: text}
}

// store returns where the kubeconfig of the hub is kept: in a Secret of the member if the
// agent runs there and gets it from the Secret, or else in a file.
func (a *agent) store() (credentials.Store, error) {
	if a.options.member.kubeconfig != "" || a.options.hub.enrolment.Token != "" || a.options.hub.kubeconfig == "" {
		return credentials.File{Path: a.options.hubFile()}, nil
	}
	member, err := a.client(a.member)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the member: %w", err)
	}
	return credentials.Secret{Member: member, Namespace: a.options.hub.namespace, Name: hubSecret, Key: hubSecret}, nil
}

// hubSecret is the Secret in the member, and the key in it, with the kubeconfig of
// the hub.
const hubSecret = "karmada-kubeconfig"

// mostSkew is how far the clocks of the two sides may differ before it is reported.
const mostSkew = 5 * time.Minute

// changed logs when the hub comes back and when it goes away.
func (a *agent) changed(away error) {
	switch {
	case errors.Is(away, hubconn.ErrOtherHub):
		a.log.Error(away, "nothing is taken from this hub: if it is the right one, stop the agent, remove its --data-dir and start it again")
	case errors.Is(away, hubconn.ErrRefused):
		a.keeper.Check()
		a.log.Error(away, "going on without the hub: it may be starting; if it stays so and the certificate cannot be renewed, register the cluster anew, by the line that flotilla token create prints")
	case errors.Is(away, hub.ErrHeld):
		a.log.Error(away, "going on with what the hub said before")
	case away != nil:
		a.log.Info("Going on without the hub", "reason", away.Error())
	default:
		if skew := a.conn.Skew(); skew.Abs() > mostSkew {
			a.log.Info("The clocks differ: set this machine's, certificates and heartbeats depend on it", "hub is ahead by", skew.String())
		}
		a.log.Info("The hub is there")
		a.back()
	}
}

// client returns a client of the hub or the member, without a cache.
func (a *agent) client(cfg *rest.Config) (client.Client, error) {
	return client.New(cfg, client.Options{Scheme: a.scheme, Mapper: kinds.Mapper()})
}

// start runs all parts until ctx ends or one of them cannot go on.
func (a *agent) start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	direct, err := a.client(a.hub)
	if err != nil {
		return fmt.Errorf("set up the connection to the hub: %w", err)
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { a.keep(ctx, cancel) })
	parts.Go(func() { a.offer.run(ctx) })
	parts.Go(func() { a.cache.Run(ctx) })
	parts.Go(func() { a.conn.Run(ctx) })
	parts.Go(func() { a.keeper.Run(ctx) })
	parts.Go(func() {
		if err := a.register(ctx, direct); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	parts.Go(func() {
		heartbeat.New(direct, heartbeat.Options{
			Cluster: a.options.clusterName, Own: a.own, Back: a.conn.Back, Note: a.note, Answers: a.answers, Soon: a.soon,
			Duration: a.options.lease.duration, Fraction: a.options.lease.fraction,
		}).Run(ctx)
	})
	a.log.Info("Starting", "cluster", a.options.clusterName, "version", telemetry.BuildVersion(a.options.version).Program, "hub", a.hub.Host, "folder", a.options.dataDir)
	err = loop(ctx, a.mgr, &a.awake)
	cancel(err)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// loop runs a manager's loops until ctx ends; awake is true once they run. If they do not run
// yet when ctx ends, loop does not wait for the manager: without a hub its caches may never
// be filled, and it would wait for that forever.
func loop(ctx context.Context, mgr ctrl.Manager, awake *atomic.Bool) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if !awake.Load() {
		return nil
	}
	return <-ended
}

// own returns the agent's Cluster on the hub; nil while it is not registered or not known.
func (a *agent) own(ctx context.Context) *clusterv1alpha1.Cluster {
	if !a.awake.Load() {
		return nil // the caches are not filled yet
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := a.mgr.GetClient().Get(ctx, client.ObjectKey{Name: a.options.clusterName}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return cluster
}

// The first and the longest pause between attempts to register; the pause doubles.
const (
	firstAttempt = time.Second
	lastAttempt  = time.Minute
)

// register registers the cluster once the hub is there. A permanent error ends the program.
func (a *agent) register(ctx context.Context, direct client.Client) error {
	member, err := a.client(a.member)
	if err != nil {
		return fmt.Errorf("set up the connection to the member: %w", err)
	}
	entry := selfregistration.New(selfregistration.Options{
		Name: a.options.clusterName, Hub: direct, Member: member, Namespace: a.options.member.namespace,
		Endpoint: a.endpoint(), Proxy: a.options.member.proxy, Insecure: a.member.Insecure, Report: a.options.member.report,
		Provider: a.options.member.provider, Region: a.options.member.region, Zones: a.options.member.zones,
		Version: a.options.version,
	})
	last := ""
	for pause := firstAttempt; ; pause = min(2*pause, lastAttempt) {
		if err := a.conn.Await(ctx); err != nil {
			return err
		}
		err := entry.Register(ctx)
		if err == nil || errors.Is(err, selfregistration.ErrRefused) {
			return err
		}
		if text := err.Error(); text != last && !errors.Is(err, hub.ErrAway) && ctx.Err() == nil {
			a.log.Error(err, "the cluster is not registered yet")
			last = text
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// endpoint returns the address at which the hub would reach the member; empty if only the
// address for pods is known, which is of no use outside the member.
func (a *agent) endpoint() string {
	if a.options.member.endpoint != "" || a.options.member.kubeconfig == "" {
		return a.options.member.endpoint
	}
	return a.member.Host
}

// readyz returns an error while the loops cannot work.
func (a *agent) readyz(*http.Request) error {
	if !a.awake.Load() {
		if away := a.conn.Away(); away != nil {
			return fmt.Errorf("nothing is known of this cluster yet, and the hub is away: %w", away)
		}
		return errors.New("what the hub says is being read")
	}
	return nil
}
