package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Period is how often a member is probed, and at most how often
	// its resource summary is written; zero means 10 s.
	Period time.Duration
	// ProbeTimeout is how long a probe may take; zero means DefaultProbeTimeout.
	ProbeTimeout time.Duration
	// FailureThreshold is how long a member must fail before it counts as not
	// ready; zero means 30 s.
	FailureThreshold time.Duration
	// SuccessThreshold is how long a member must be healthy before it counts as
	// ready again; zero means 30 s.
	SuccessThreshold time.Duration
	// Resync is how often a member's version and kinds are read although nothing
	// shows that they changed; zero means 10 min.
	Resync time.Duration
	// Workers is how many clusters are reconciled concurrently; zero means 4.
	Workers int
	// NoModels leaves nodes uncounted, whatever the clusters' resource models.
	NoModels bool
	// Own names the one cluster that the loop reports for, in whatever mode that
	// is: what an agent does. Empty means the hub's part: clusters in push mode
	// are reported for, those in pull mode are judged by their Leases, and all get
	// what goes with them.
	Own string
	// Target returns how to connect to a cluster; nil means by the Secret that its
	// spec.secretRef names. An error that members.ErrCredentials matches is shown
	// in the cluster's condition Ready, others are tried again.
	Target func(context.Context, *clusterv1alpha1.Cluster) (members.Target, error)
	// Claimant returns the hub that claims the cluster; nil means the one that the loop reads
	// from, by its namespace kube-system.
	Claimant func(cluster string) hubclaim.Claimant
	// Place is where the hub is, which is kept apart from a copy of it elsewhere; empty:
	// that is not known.
	Place string
	// Marks checks the marks that members carry of the hub; nil does not.
	Marks members.Marker
	// Hold returns why nothing may be changed in some clusters, which their conditions show; nil,
	// and a nil answer, mean that there is no hold.
	Hold func() *hubclaim.Hold
	// OnHold is called when that begins and ends; nil is not.
	OnHold func(reported func())
	// Silence is how long a cluster in pull mode may give no sign.
	Silence Silence
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

// Silence is how long nothing may be heard of a cluster in pull mode before it
// counts as not known to be ready.
type Silence struct {
	// Grace is for one that has reported before, Startup for one that never has; zero
	// means DefaultGrace and DefaultStartup.
	Grace, Startup time.Duration
}

// DefaultProbeTimeout is the default of Options.ProbeTimeout.
const DefaultProbeTimeout = 5 * time.Second

// How long clusters may be silent, as in Karmada.
const (
	DefaultGrace   = 40 * time.Second
	DefaultStartup = time.Minute
)

func defaults(opts Options) Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&opts.Period, 10*time.Second)
	set(&opts.ProbeTimeout, DefaultProbeTimeout)
	set(&opts.FailureThreshold, 30*time.Second)
	set(&opts.SuccessThreshold, 30*time.Second)
	set(&opts.Resync, 10*time.Minute)
	set(&opts.Silence.Grace, DefaultGrace)
	set(&opts.Silence.Startup, DefaultStartup)
	if opts.Workers == 0 {
		opts.Workers = 4
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return opts
}

// Reconciler keeps the status of Clusters up to date.
type Reconciler struct {
	hub        client.Client
	live       client.Reader
	registry   *members.Registry
	events     loop.Recorder
	opts       Options
	tasks      *taskgroup.Group
	wrote      *writecache.Cache[*clusterv1alpha1.Cluster]
	heartbeats *heartbeats
	// Presence reports which clusters are reachable.
	Presence Presence
	// OnCapacity is called with clusters in which more may fit although what they report does
	// not show it; set before Register. Nil: nobody asks.
	OnCapacity func(cluster string)
	// OnNodes is called when nodes, pods or quotas of a cluster have changed, and must be
	// quick; set before Register. Nil: nobody asks.
	OnNodes func()

	claim   *claimant
	watches *memberWatches
	spaces  spaces
}

// New returns the loop. live reads from the server: Secrets, so that no cache holds all of
// the hub's, and for what a cache may not know yet.
func New(hub client.Client, live client.Reader, registry *members.Registry, events loop.Recorder, opts Options) *Reconciler {
	opts = defaults(opts)
	r := &Reconciler{
		hub:        hub,
		live:       live,
		registry:   registry,
		events:     events,
		opts:       opts,
		tasks:      taskgroup.New(),
		wrote:      writecache.New[*clusterv1alpha1.Cluster](opts.Clock),
		heartbeats: newHeartbeats(opts.Clock),
		watches:    newMemberWatches(registry, events),
		spaces:     spaces{hub: hub, live: live, events: events},
		claim:      &claimant{hub: hub, live: live, opts: &opts},
	}
	r.Presence = Presence{registry, r.heartbeats}
	if opts.OnHold != nil {
		opts.OnHold(func() { r.watches.wake(r.heartbeats.clusters()) })
	}
	return r
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.New[reconcile.Request]}).
		Watches(&clusterv1alpha1.Cluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.opts.ofInterest), r.desiredChanges())).
		WatchesRawSource(source.Func(r.watches.setQueue))
	if r.opts.Own == "" {
		b = b.Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(clusterOfSpace), builder.WithPredicates(lossOnly())).
			Watches(&coordinationv1.Lease{}, r.heartbeats)
	}
	if r.opts.Target == nil {
		b = b.WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfSecret))
	}
	err := b.Complete(r)
	if err != nil {
		return fmt.Errorf("register the cluster loop: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		r.tasks.Go(r.heartbeats.awake.Run)
		r.tasks.Run(ctx)
		return nil
	}))
}

// ofInterest leaves out clusters that this loop does not report for.
func (opts *Options) ofInterest(obj client.Object) bool {
	return opts.Own == "" || obj.GetName() == opts.Own
}

// models returns what the nodes of a cluster are counted by.
func (opts *Options) models(cluster *clusterv1alpha1.Cluster) []clusterv1alpha1.ResourceModel {
	if opts.NoModels {
		return nil
	}
	return cluster.Spec.ResourceModels
}

// desiredChanges leaves out changes of the status that this loop made. Of the
// others it takes those of a status that it shares: of Ready in pull mode.
func (r *Reconciler) desiredChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			is, also := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if !ok || !also {
				return true
			}
			own := r.wrote.Observed(is)
			return r.opts.shared(was, is) && !own ||
				was.UID != is.UID || certified(was) != certified(is) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
				!equality.Semantic.DeepEqual(was.Spec, is.Spec) || !equality.Semantic.DeepEqual(was.Finalizers, is.Finalizers)
		},
	}
}

// shared reports whether a part of the status changed that somebody else writes,
// too: the hub judges clusters whose agents report for them.
func (opts *Options) shared(was, is *clusterv1alpha1.Cluster) bool {
	if opts.Own != "" {
		return !equality.Semantic.DeepEqual(was.Status, is.Status)
	}
	return is.Spec.SyncMode == clusterv1alpha1.Pull && !equality.Semantic.DeepEqual(readiness(was), readiness(is))
}

func lossOnly() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

func clusterOfSpace(_ context.Context, namespace client.Object) []reconcile.Request {
	name, ok := workv1alpha2.ClusterOfExecutionNamespace(namespace.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}

// state is one pass over one cluster.
type state struct {
	cluster *clusterv1alpha1.Cluster // shared: not to be changed
	seen    *observation             // nil: nothing seen yet
	status  *clusterv1alpha1.ClusterStatus
}

// Reconcile brings one Cluster up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cached := &clusterv1alpha1.Cluster{}
	err := r.hub.Get(ctx, req.NamespacedName, cached, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read cluster %s: %w", req.Name, err)
	}
	if err != nil {
		r.wrote.Forget(req.NamespacedName)
		r.heartbeats.forget(req.Name)
		r.watches.stop(req.Name)
		return reconcile.Result{}, nil
	}
	cluster, _ := r.wrote.Latest(req.NamespacedName, cached, true)
	s := &state{cluster: cluster}
	return loop.Result(loop.Run(ctx, s, r.phases(cluster)...))
}

// phases returns the phases for a cluster.
func (r *Reconciler) phases(cluster *clusterv1alpha1.Cluster) []loop.Phase[state] {
	phases := []loop.Phase[state]{r.connect, r.describe}
	if r.opts.Own == "" && cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		phases = []loop.Phase[state]{r.judge}
	}
	switch {
	case r.opts.Own != "":
		return append(phases, r.report)
	case cluster.DeletionTimestamp.IsZero():
		return append(phases, r.syncTaints, r.spaces.ensure, r.report)
	default:
		return append(phases, r.report, r.leave)
	}
}
