package orphans

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	policy "github.com/flotilla-io/flotilla/policies/orphans"
)

// Options tune the loop. The zero value serves all clusters in push mode.
type Options struct {
	// Own is the cluster that an agent serves; empty means those in push mode.
	Own string
	// Grace is how long an object has to be without a Work before it counts, and
	// how long changes wait for more; zero means 10 s.
	Grace time.Duration
	// Hold returns why nothing may be removed from members, whatever a policy says; nil, and a
	// nil answer, mean that there is no hold. Wake is called when that changes.
	Hold func(cluster string) *hubclaim.Hold
	// Metrics is where orphans are counted; nil counts for nobody.
	Metrics prometheus.Registerer
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

const (
	defaultGrace = 10 * time.Second
	// seldom is how long changes in a member without orphans wait for a sweep.
	seldom = 5 * time.Minute
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Reconciler finds orphans, in one sweep per cluster at a time. Use New.
type Reconciler struct {
	hub      client.Client
	live     client.Reader
	registry *members.Registry
	events   loop.Recorder
	opts     Options
	count    *prometheus.GaugeVec // by cluster
	renamed  renamed
	released released

	mu       sync.Mutex
	queue    queue                          // nil until the workers run
	suspects map[string]map[policy.ID]since // by cluster
}

// since is when an object was first seen without a Work.
type since struct {
	uid types.UID
	at  time.Time
}

// New returns the loop, as a handler of the events of the registry's members. hub
// reads from a cache, live from the control plane itself.
func New(hub client.Client, live client.Reader, registry *members.Registry, events loop.Recorder, opts Options) *Reconciler {
	if opts.Grace == 0 {
		opts.Grace = defaultGrace
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	r := &Reconciler{
		hub: hub, live: live, registry: registry, events: events, opts: opts, count: newFound(opts.Metrics), suspects: map[string]map[policy.ID]since{},
		renamed:  renamed{seen: map[string]listing{}},
		released: released{byCluster: map[string]map[policy.ID]bool{}},
	}
	registry.Handle(r)
	return r
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	c, err := controller.New("orphans", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 2})
	if err != nil {
		return fmt.Errorf("set up the loop of orphans: %w", err)
	}
	for _, s := range []source.Source{
		source.Func(r.attach),
		source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, r.clusterEvents()),
		source.Kind(mgr.GetCache(), &workv1alpha1.Work{}, r.workEvents()),
	} {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch what tells of orphans: %w", err)
		}
	}
	return nil
}

func (r *Reconciler) attach(_ context.Context, q queue) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = q
	return nil
}

// sweepSoon sweeps a cluster once changes there have ended.
func (r *Reconciler) sweepSoon(cluster string) { r.sweepAfter(cluster, r.opts.Grace) }

func (r *Reconciler) sweepAfter(cluster string, after time.Duration) {
	r.mu.Lock()
	q := r.queue
	r.mu.Unlock()
	if q != nil {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: cluster}}, after)
	}
}

// clusterEvents enqueues a cluster whose policy changed, and reports one whose condition
// changed.
func (r *Reconciler) clusterEvents() handler.TypedEventHandler[*clusterv1alpha1.Cluster, reconcile.Request] {
	return handler.TypedFuncs[*clusterv1alpha1.Cluster, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], _ queue) {
			if e.ObjectOld.Annotations[clusterv1alpha1.OrphansAnnotation] != e.ObjectNew.Annotations[clusterv1alpha1.OrphansAnnotation] {
				r.sweepSoon(e.ObjectNew.Name)
			}
			if c := found(e.ObjectNew); r.opts.Own == "" && c != nil && found(e.ObjectOld) == nil {
				r.events.Event(e.ObjectNew, corev1.EventTypeWarning, clusterv1alpha1.ClusterConditionOrphansFound, c.Message)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*clusterv1alpha1.Cluster], _ queue) {
			r.forget(e.Object.Name)
		},
	}
}

// workEvents looks at the cluster of a Work that is gone or asks for something else
// than before.
func (r *Reconciler) workEvents() handler.TypedEventHandler[*workv1alpha1.Work, reconcile.Request] {
	enqueue := func(w *workv1alpha1.Work) {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); ok {
			r.sweepSoon(cluster)
		}
	}
	return handler.TypedFuncs[*workv1alpha1.Work, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*workv1alpha1.Work], _ queue) {
			if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(e.Object.Namespace); ok && some(r, cluster) {
				enqueue(e.Object) // the object that it names may exist already, without a change that follows
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*workv1alpha1.Work], _ queue) {
			if e.ObjectOld.Generation != e.ObjectNew.Generation && len(e.ObjectNew.Spec.Workload.Manifests) != 1 {
				enqueue(e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*workv1alpha1.Work], _ queue) {
			if enqueue(e.Object); r.released.from(e.Object) {
				cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(e.Object.Namespace)
				r.sweepAfter(cluster, soon)
			}
		},
	}
}

// some reports whether there may be orphans in a cluster.
func some(r *Reconciler, cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.suspects[cluster]) > 0
}

// Changed implements members.Handler. What changes in a member seldom makes an
// orphan: where there is none, it is enough to look now and then.
func (r *Reconciler) Changed(cluster string, observed *members.Observed) {
	switch {
	case some(r, cluster):
		r.sweepSoon(cluster)
	case observed.Managed:
		r.sweepAfter(cluster, seldom)
	}
}

// Synced implements members.Handler.
func (r *Reconciler) Synced(cluster string, _ schema.GroupVersionKind) { r.sweepSoon(cluster) }

// Proven implements members.Handler.
func (r *Reconciler) Proven(cluster string) { r.sweepSoon(cluster) }

// KindsChanged implements members.Handler.
func (*Reconciler) KindsChanged(string) {}

var _ members.Handler = (*Reconciler)(nil)

// forget drops what is known of a cluster.
func (r *Reconciler) forget(cluster string) {
	r.renamed.forget(cluster)
	r.released.take(cluster)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.suspects, cluster)
	r.count.DeleteLabelValues(cluster)
}

// volumeClaimKind is that of what holds data.
var volumeClaimKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")

// state is what the phases pass on.
type state struct {
	key     client.ObjectKey
	cluster *clusterv1alpha1.Cluster
	member  *members.Member
	swept   sweep
	// kept is why orphans stay that the cluster's policy would have removed.
	kept policy.Kept
	// unremoved is the error of the removal: what is left is reported all the same.
	unremoved error
}

// Reconcile finds the orphans of one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &state{key: req.NamespacedName}, r.read, r.watch, r.sweep, r.remove, r.report))
}

// read reads the cluster and finds its member.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	c := &clusterv1alpha1.Cluster{}
	if err := r.hub.Get(ctx, s.key, c); err != nil {
		return loop.Next{Done: true}, client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() || !r.serves(c) {
		return loop.Next{Done: true}, nil
	}
	member, ok := r.registry.Get(c.Name)
	s.cluster, s.member = c, member
	return loop.Next{Done: !ok}, nil // without the member, what was known stays; the loop is called when it is back
}

// watch has the kinds watched that no Work need name, and waits until those are that the status is about.
func (r *Reconciler) watch(ctx context.Context, s *state) (loop.Next, error) {
	if s.member.Proven() {
		if err := r.renamed.find(ctx, s.cluster.Name, s.member, r.opts.held(s.cluster.Name)); err != nil {
			log.FromContext(ctx).Info("What was left is looked for again later", "cluster", s.cluster.Name, "why", err.Error())
			r.sweepAfter(s.cluster.Name, seldom)
		}
	}
	if was := found(s.cluster); was != nil && policy.NamesVolumeClaims(was.Message) {
		// After a restart no Work need name their kind, and what is not watched would be called gone.
		if _, presence := s.member.Read(volumeClaimKind, types.NamespacedName{}); presence == members.Unknown {
			return loop.Next{Done: true}, nil // Synced brings it back
		}
	}
	return loop.Next{}, nil
}

// kept returns why orphans stay that the cluster's policy would have removed.
func (opts *Options) kept(c *clusterv1alpha1.Cluster, s *sweep) policy.Kept {
	switch {
	case opts.held(c.Name):
		return policy.KeptAsHeld
	case c.Annotations[clusterv1alpha1.OrphansAnnotation] == clusterv1alpha1.OrphansDelete && len(s.certain) > 0 && policy.Brakes(len(s.certain), s.managed):
		return policy.KeptAsMany
	default:
		return policy.KeptByPolicy
	}
}

// Wake enqueues every cluster with orphans: a hold has ended, or
// has begun.
func (r *Reconciler) Wake() {
	r.mu.Lock()
	clusters := slices.Collect(maps.Keys(r.suspects))
	r.mu.Unlock()
	for _, cluster := range clusters {
		r.sweepSoon(cluster)
	}
}

// held reports whether nothing is removed from a cluster, as the store was set back.
func (opts *Options) held(cluster string) bool {
	return opts.Hold != nil && opts.Hold(cluster) != nil
}

func (r *Reconciler) serves(c *clusterv1alpha1.Cluster) bool {
	if r.opts.Own != "" {
		return c.Name == r.opts.Own
	}
	return c.Spec.SyncMode == clusterv1alpha1.Push
}

// found returns the cluster's condition OrphansFound, if it is True.
func found(c *clusterv1alpha1.Cluster) *metav1.Condition {
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionOrphansFound) {
		return nil
	}
	return meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionOrphansFound)
}
