package execution

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/metrics"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/seal"
	"github.com/flotilla-io/flotilla/reconciler/execution/workfinalizer"
	"github.com/flotilla-io/flotilla/reconciler/sleepdetector"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value serves all clusters in push mode.
type Options struct {
	// Serves reports whether a cluster's Works are applied; nil means those in push
	// mode, and Works whose Cluster is gone.
	Serves func(*clusterv1alpha1.Cluster) bool
	// Workers is how many Works of one cluster are reconciled concurrently; zero
	// means 16. The requests to the member at a time are bounded by internal/members.
	Workers int
	// Wait is how long the write of a changed status waits for further changes, unless
	// Applied or the health has changed; zero means 250 ms.
	Wait time.Duration
	// MaxWait is how long such a write waits in total; zero means 1 s.
	MaxWait time.Duration
	// PodsDelay is how long a workload may not be ready before its Pods are looked at; zero means
	// 30 s.
	PodsDelay time.Duration
	// Hold returns why nothing may be changed in a cluster; nil, and a nil answer, mean that
	// there is no hold. Wake is called when a hold ends.
	Hold func(cluster string) *hubclaim.Hold
	// Answers reports whether a cluster has answered since somebody asked, and since when; if not, when to ask again. Where it
	// is nil, only the status of a Cluster says that it was lost.
	Answers deletionrecheck.Answers
	// Hub is what an agent knows of its hub, by which it asks before it does what it was to do while it was away; nil never asks.
	Hub deletionrecheck.Hub
	// Seal signs the records of what was applied, where others may write them, too.
	Seal seal.Seal
	// Metrics is where the loop registers its metrics; nil registers none.
	Metrics prometheus.Registerer
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

const (
	defaultWorkers = 16
	defaultWait    = 250 * time.Millisecond
	defaultMaxWait = time.Second
)

// Reconciler applies Works to members, by one worker per cluster: it receives the events of Clusters,
// Works and members, and fills the queues of the workers.
type Reconciler struct {
	opts      Options
	finalizer workfinalizer.Finalizer
	wrote     *writecache.Cache[*workv1alpha1.Work]
	delayed   *debounce.Debouncer[client.ObjectKey]
	workers   *workers
}

// New returns the loop, as a handler of the events of the registry's members.
func New(hub client.Client, registry *members.Registry, retainer retention.Retainer, events loop.Recorder, o Options) *Reconciler {
	o = defaults(o)
	p := &parts{
		hub:       hub,
		connected: connectionsOf(registry),
		retention: retention.Retention{Retainer: retainer},
		events:    events,
		opts:      o,
		drifts:    drift.NewCounter(o.Metrics),
		wrote:     writecache.New[*workv1alpha1.Work](o.Clock),
		delayed:   debounce.New[client.ObjectKey](debounce.Options{Wait: o.Wait, MaxWait: o.MaxWait, Clock: o.Clock}),
	}
	r := of(p)
	if ticks, ok := o.Clock.(clock.WithTicker); ok {
		sleep := sleepdetector.New(ticks, deletionrecheck.Asleep)
		p.woke = sleep.Woke
		r.workers.tasks.Go(sleep.Run)
	}
	p.dispatch = metrics.Dispatch(o.Metrics, o.Clock, r.workers.waiting)
	registry.Handle(r)
	return r
}

// of returns the loop whose workers use these parts.
func of(p *parts) *Reconciler {
	return &Reconciler{
		opts: p.opts, finalizer: p.workFinalizer(), wrote: p.wrote, delayed: p.delayed, workers: newWorkers(p, p.opts.serves),
	}
}

func defaults(o Options) Options {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.MaxWait == 0 {
		o.MaxWait = defaultMaxWait
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// serves reports whether this loop applies the Works of a cluster.
func (o *Options) serves(cluster *clusterv1alpha1.Cluster) bool {
	if o.Serves != nil {
		return o.Serves(cluster)
	}
	return cluster.Spec.SyncMode == clusterv1alpha1.Push
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := r.listen(ctx, mgr); err != nil {
			return err
		}
		if r.opts.Serves == nil {
			r.workers.open(ctx, "")
		}
		r.workers.run(ctx)
		return nil
	}))
}
