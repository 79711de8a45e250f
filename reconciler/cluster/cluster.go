package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/flotilla-io/flotilla/internal/crew"
	"github.com/flotilla-io/flotilla/internal/lanes"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/echo"
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Period is how often a member's health is asked for, and at most how often
	// its resource summary is written; zero means 10 s.
	Period time.Duration
	// ProbeTimeout is how long a member may take to say how it is; zero means 5 s.
	ProbeTimeout time.Duration
	// FailureThreshold is how long a member must fail before it counts as not
	// ready; zero means 30 s.
	FailureThreshold time.Duration
	// SuccessThreshold is how long a member must be well before it counts as
	// ready again; zero means 30 s.
	SuccessThreshold time.Duration
	// Resync is how often a member's version and kinds are read although nothing
	// says that they changed; zero means 10 min.
	Resync time.Duration
	// Workers is how many clusters are worked on side by side; zero means 4.
	Workers int
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

func defaults(o Options) Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Period, 10*time.Second)
	set(&o.ProbeTimeout, 5*time.Second)
	set(&o.FailureThreshold, 30*time.Second)
	set(&o.SuccessThreshold, 30*time.Second)
	set(&o.Resync, 10*time.Minute)
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Recorder emits Events.
type Recorder interface {
	Event(obj runtime.Object, eventType, reason, message string)
}

// Reconciler keeps Clusters true.
type Reconciler struct {
	hub      client.Client
	secrets  client.Reader
	registry *members.Registry
	recorder Recorder
	options  Options
	crew     *crew.Crew
	wrote    *echo.Echo[*clusterv1alpha1.Cluster]

	mu    sync.Mutex
	posts map[string]*post
	edits uint64 // counts changes of Secrets with credentials
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns the loop. Secrets are read through their own reader, so that no
// cache holds all of the hub's: pass one that asks the server.
func New(hub client.Client, secrets client.Reader, registry *members.Registry, recorder Recorder, o Options) *Reconciler {
	o = defaults(o)
	return &Reconciler{
		hub:      hub,
		secrets:  secrets,
		registry: registry,
		recorder: recorder,
		options:  o,
		crew:     crew.New(),
		wrote:    echo.New[*clusterv1alpha1.Cluster](o.Clock),
		posts:    map[string]*post{},
	}
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.options.Workers, NewQueue: lanes.New[reconcile.Request]}).
		Watches(&clusterv1alpha1.Cluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(r.desiredChanges())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(clusterOfSpace), builder.WithPredicates(lossOnly())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfSecret)).
		WatchesRawSource(source.Func(r.attach)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the cluster loop: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		r.crew.Run(ctx)
		return nil
	}))
}

// attach keeps the queue, so that what is seen in a member brings its Cluster in.
func (r *Reconciler) attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = queue
	return nil
}

// desiredChanges leaves out changes of the status: they are this loop's own.
func (r *Reconciler) desiredChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			is, also := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if !ok || !also {
				return true
			}
			r.wrote.Observed(is)
			return was.UID != is.UID || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
				!equality.Semantic.DeepEqual(was.Spec, is.Spec) || !equality.Semantic.DeepEqual(was.Finalizers, is.Finalizers)
		},
	}
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

// state is one look at one cluster.
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
		r.wrote.Gone(req.NamespacedName)
		r.dismiss(req.Name)
		return reconcile.Result{}, nil
	}
	cluster, _ := r.wrote.Latest(req.NamespacedName, cached, true)
	s := &state{cluster: cluster}
	phases := []loop.Phase[state]{r.connect, r.describe, r.mark, r.space, r.report}
	if !cluster.DeletionTimestamp.IsZero() {
		phases = []loop.Phase[state]{r.connect, r.describe, r.report, r.leave}
	}
	return loop.Result(loop.Run(ctx, s, phases...))
}
