package execution

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/claims"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/execution/acting"
	"github.com/flotilla-io/flotilla/reconciler/execution/guard"
	"github.com/flotilla-io/flotilla/reconciler/execution/parting"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/seal"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value serves all clusters in push mode.
type Options struct {
	// Serves says which clusters' Works are carried; nil means those in push
	// mode, and Works whose Cluster is gone.
	Serves func(*clusterv1alpha1.Cluster) bool
	// Workers is how many Works of one cluster are worked on side by side; zero
	// means 16. What reaches the member at once is bounded by the member.
	Workers int
	// Wait is how long a change of a status waits for the next one, unless it
	// is one of Applied or health; zero means 250 ms.
	Wait time.Duration
	// MaxWait is how long such a change waits in all; zero means 1 s.
	MaxWait time.Duration
	// Hold is why nothing is changed in a cluster; nil, and a nil answer, is that
	// nothing is held. Wake is called when that ends.
	Hold func(cluster string) *claims.Hold
	// Seal proves the records of what was applied, where others may write them too.
	Seal seal.Seal
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

const (
	defaultWorkers = 16
	defaultWait    = 250 * time.Millisecond
	defaultMaxWait = time.Second
)

// member is what the loop asks of a member cluster.
type member interface {
	reader
	writer
}

type reader interface {
	Read(gvk schema.GroupVersionKind, key types.NamespacedName) (*members.Observed, members.Presence)
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
	Served(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error)
	Autoscaled(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (bool, error)
	Standing() claims.Standing
}

type writer interface {
	acting.Member
	Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, uid types.UID) (gone bool, err error)
}

var _ member = (*members.Member)(nil)

// Reconciler carries Works to members, one lane per cluster.
type Reconciler struct {
	hub       client.Client
	connected func(cluster string) (member, bool)
	retention retention.Retention
	recorder  loop.Recorder
	options   Options
	tasks     *taskgroup.Group
	drifts    *prometheus.CounterVec // by cluster, kind and what was done
	wrote     *writecache.Cache[*workv1alpha1.Work]
	parting   parting.Parting
	guard     *guard.Guard
	delayed   *debounce.Debouncer[client.ObjectKey]

	mu    sync.RWMutex
	lanes map[string]*lane // by cluster; the empty name takes Works of clusters that are gone
}

// New returns the loop and has it told what happens in the registry's members.
func New(hub client.Client, registry *members.Registry, retainer retention.Retainer, recorder loop.Recorder, o Options) *Reconciler {
	r := &Reconciler{
		hub: hub,
		connected: func(cluster string) (member, bool) {
			if m, ok := registry.Get(cluster); ok {
				return m, true
			}
			return nil, false // no member at all, not one that is nil
		},
		retention: retention.Retention{Retainer: retainer},
		recorder:  recorder,
		options:   defaults(o),
		tasks:     taskgroup.New(),
		drifts:    driftCounter(),
		lanes:     map[string]*lane{},
	}
	r.wrote = writecache.New[*workv1alpha1.Work](r.options.Clock)
	r.parting = parting.New(hub, r.wrote, r.options.Serves == nil)
	r.guard = guard.New(hub, r.wrote, recorder, r.options.Clock)
	r.delayed = debounce.New[client.ObjectKey](debounce.Options{Wait: r.options.Wait, MaxWait: r.options.MaxWait, Clock: r.options.Clock})
	registry.Handle(r)
	return r
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

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := r.listen(ctx, mgr); err != nil {
			return err
		}
		if r.options.Serves == nil {
			r.open(ctx, "")
		}
		r.tasks.Run(ctx)
		return nil
	}))
}

// listen opens and closes lanes as Clusters come and go, and puts Works into
// them.
func (r *Reconciler) listen(ctx context.Context, mgr ctrl.Manager) error {
	if err := r.parting.Listen(ctx, mgr, r.parted); err != nil {
		return err
	}
	clusters, err := mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	works, err := mgr.GetCache().GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	if _, err := clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.clusterSeen(ctx, nil, obj) },
		UpdateFunc: func(before, obj any) { r.clusterSeen(ctx, before, obj) },
		DeleteFunc: func(obj any) { r.clusterGone(ctx, obj) },
	}); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	if _, err := works.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.workSeen(nil, obj) },
		UpdateFunc: r.workSeen,
		DeleteFunc: r.workGone,
	}); err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	return nil
}

func (r *Reconciler) clusterSeen(ctx context.Context, before, obj any) {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	if r.serves(cluster) {
		r.open(ctx, cluster.Name)
	} else {
		r.close(cluster.Name)
	}
	if lane := r.lane(cluster.Name); lane != nil && !cluster.DeletionTimestamp.IsZero() {
		// A cluster that leaves lets go of Works that wait for it.
		lane.queue.Release(func(waitqueue.Cause) bool { return true })
	} else if was, ok := before.(*clusterv1alpha1.Cluster); ok && lane != nil && access.AppliesAsAuthor(was) != access.AppliesAsAuthor(cluster) {
		lane.queue.Release(func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnRights })
	}
}

func (r *Reconciler) clusterGone(ctx context.Context, obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	r.close(cluster.Name)
	if orphans := r.lane(""); orphans != nil {
		orphans.load(ctx, workv1alpha2.ExecutionNamespace(cluster.Name))
	}
}

func (r *Reconciler) serves(cluster *clusterv1alpha1.Cluster) bool {
	if r.options.Serves != nil {
		return r.options.Serves(cluster)
	}
	return cluster.Spec.SyncMode == clusterv1alpha1.Push
}

// workSeen puts a Work in its lane, unless only its status changed: that is our
// own doing. An agent looks again where it is not: its token may have been stolen.
func (r *Reconciler) workSeen(before, after any) {
	work, ok := after.(*workv1alpha1.Work)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(work)
	lane := r.laneOf(key)
	if lane != nil {
		lane.owners.note(work)
	}
	ours := r.wrote.Observed(work) || r.options.Serves == nil
	if was, ok := before.(*workv1alpha1.Work); ok && ours && was.Generation == work.Generation && was.UID == work.UID &&
		was.DeletionTimestamp.IsZero() == work.DeletionTimestamp.IsZero() && reports(was) == reports(work) && guard.Allowed(was) == guard.Allowed(work) && recalled(was) == recalled(work) &&
		was.Annotations[workv1alpha2.AppliedByAnnotation] == work.Annotations[workv1alpha2.AppliedByAnnotation] {
		return
	}
	if lane != nil {
		lane.queue.Add(key)
		if work.DeletionTimestamp.IsZero() { // else it has its objects until it is gone
			lane.queue.Free(key)
		}
		return
	}
	if orphans := r.lane(""); orphans != nil && !work.DeletionTimestamp.IsZero() {
		orphans.queue.Add(key)
	}
}

// parted looks at a Work whose binding is being deleted.
func (r *Reconciler) parted(key client.ObjectKey) {
	if lane := r.laneOf(key); lane != nil {
		lane.queue.Add(key)
	}
}

func (r *Reconciler) workGone(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if work, ok := obj.(*workv1alpha1.Work); ok {
		key := client.ObjectKeyFromObject(work)
		r.wrote.Gone(key)
		r.delayed.Forget(key)
		if lane := r.laneOf(key); lane != nil {
			lane.forget(key)
			lane.queue.Free(key)
		}
	}
}

func (r *Reconciler) lane(cluster string) *lane {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lanes[cluster]
}

func (r *Reconciler) laneOf(work client.ObjectKey) *lane {
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace)
	if !ok {
		return nil
	}
	return r.lane(cluster)
}

// Proven implements members.Handler.
func (r *Reconciler) Proven(cluster string) {
	if lane := r.lane(cluster); lane != nil {
		lane.queue.Release(func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnProof || c.Event == waitqueue.OnRetry })
	}
}

// Synced implements members.Handler.
func (r *Reconciler) Synced(cluster string, gvk schema.GroupVersionKind) {
	if lane := r.lane(cluster); lane != nil {
		lane.queue.Release(func(c waitqueue.Cause) bool { return c == waitqueue.Cause{Event: waitqueue.OnSync, Kind: gvk} })
	}
}

// KindsChanged implements members.Handler.
func (r *Reconciler) KindsChanged(cluster string) {
	if lane := r.lane(cluster); lane != nil {
		lane.queue.Release(func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnKinds })
	}
}

// Changed implements members.Handler. What an object says about its Work only
// counts within the member's own lane.
func (r *Reconciler) Changed(cluster string, observed *members.Observed) {
	if observed.Work.Namespace != workv1alpha2.ExecutionNamespace(cluster) {
		return
	}
	if lane := r.lane(cluster); lane != nil {
		lane.queue.Add(observed.Work)
	}
}

var _ members.Handler = (*Reconciler)(nil)

var _ reconcile.Reconciler = (*lane)(nil)
