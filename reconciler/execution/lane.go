package execution

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// lane carries the Works of one cluster.
type lane struct {
	*Reconciler
	cluster string // empty: Works whose Cluster is gone
	task    *taskgroup.Task
	queue   *waitqueue.Queue
	applied *applyCache
	backoff *backoff.Backoff
	drift   *inspector
	owners  *owners
}

// open starts the lane of a cluster, if it does not run.
func (r *Reconciler) open(ctx context.Context, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lanes[cluster] != nil {
		return
	}
	l := r.newLane(cluster)
	workers, err := controller.NewUnmanaged(laneName(cluster), controller.Options{
		Reconciler:              l,
		MaxConcurrentReconciles: r.options.Workers,
		NewQueue:                fairqueue.By(r.options.Workers, r.tenantOf(ctx)),
		SkipNameValidation:      ptr.To(true),
		RecoverPanic:            ptr.To(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoff.FirstRetry, backoff.LastRetry),
		LogConstructor:          laneLogger(log.FromContext(ctx), cluster),
	})
	if err == nil {
		err = workers.Watch(source.Func(l.attach))
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "open a lane", "cluster", cluster)
		return
	}
	r.lanes[cluster] = l
	l.task = r.tasks.Go(func(ctx context.Context) {
		if err := workers.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "run a lane", "cluster", cluster)
		}
	})
}

// tenantOf says whose a Work is, as the cache knows it: the namespace of its
// binding. Those of cluster-scoped bindings, those that no binding made and those
// that are gone are nobody's, and count as one tenant's.
func (r *Reconciler) tenantOf(ctx context.Context) func(reconcile.Request) string {
	return func(req reconcile.Request) string {
		work := &workv1alpha1.Work{}
		if err := r.hub.Get(ctx, req.NamespacedName, work, unsafeGet); err != nil {
			return "" // what a worker makes of it does not depend on whose it is
		}
		binding, _ := bindings.OwnerOf(work)
		return binding.Namespace
	}
}

func (r *Reconciler) newLane(cluster string) *lane {
	l := &lane{
		Reconciler: r,
		cluster:    cluster,
		queue:      waitqueue.New(),
		applied:    newApplyCache(),
		backoff:    backoff.New(r.options.Clock),
	}
	l.owners = &owners{loop: r, applied: l.applied, byHand: map[client.ObjectKey]bool{}}
	l.drift = &inspector{
		cluster: cluster, retention: r.retention, applied: l.applied, backoff: l.backoff, recorder: r.recorder, count: r.drifts,
	}
	return l
}

// close ends the lane of a cluster, if there is one.
func (r *Reconciler) close(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lanes[cluster]; l != nil {
		delete(r.lanes, cluster)
		l.task.Stop()
		r.drifts.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
	}
}

func laneName(cluster string) string {
	if cluster == "" {
		return "execution"
	}
	return "execution-" + cluster
}

func laneLogger(base logr.Logger, cluster string) func(*reconcile.Request) logr.Logger {
	base = base.WithValues("controller", "execution", "cluster", cluster)
	return func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return base
		}
		return base.WithValues("work", klog.KRef(req.Namespace, req.Name))
	}
}

// attach takes the queue of the lane's workers and puts the Works in that are
// there already, behind those that change now.
func (l *lane) attach(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.queue.Open(queue)
	if l.cluster == "" {
		l.load(ctx, metav1.NamespaceAll)
	} else {
		l.load(ctx, workv1alpha2.ExecutionNamespace(l.cluster))
	}
	return nil
}

// load puts the Works of a namespace in the queue. Those of clusters that are
// gone matter only if they are being deleted.
func (l *lane) load(ctx context.Context, namespace string) {
	var works workv1alpha1.WorkList
	if err := l.hub.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list works", "namespace", namespace)
		return
	}
	for i := range works.Items {
		work := &works.Items[i]
		key := client.ObjectKeyFromObject(work)
		l.owners.note(work)
		if l.cluster == "" && (work.DeletionTimestamp.IsZero() || l.laneOf(key) != nil) {
			continue
		}
		l.queue.AddLater(key)
	}
}

// forget drops what is kept of a Work that is gone.
func (l *lane) forget(key client.ObjectKey) {
	l.queue.Forget(key)
	l.applied.forget(key)
	l.owners.forget(key)
	l.backoff.Forget(key)
	l.delayed.Forget(key)
}
