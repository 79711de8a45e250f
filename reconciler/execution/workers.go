package execution

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/cascadeguard"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/owners"
	"github.com/flotilla-io/flotilla/reconciler/execution/records"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/symptoms"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
	"github.com/flotilla-io/flotilla/reconciler/execution/workfinalizer"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// parts are the dependencies of cluster workers. Each piece of a worker gets those that it
// needs, and none gets all.
type parts struct {
	hub       client.Client
	connected connections
	retention retention.Retention
	events    loop.Recorder
	opts      Options
	drifts    *drift.Counter
	dispatch  *stagemetrics.Stage
	wrote     *writecache.Cache[*workv1alpha1.Work]
	delayed   *debounce.Debouncer[client.ObjectKey]
	returns   deletionrecheck.Returns
	woke      deletionrecheck.Woke // when this process last woke after it was stopped; nil: it never is
}

// workFinalizer returns the piece that ends Works. In an agent it does not look at bindings, which agents cannot read.
func (p *parts) workFinalizer() workfinalizer.Finalizer {
	return workfinalizer.New(p.hub, p.wrote, p.opts.Serves == nil)
}

// elsewhere is what the worker for clusters that are gone needs of the others.
type elsewhere struct {
	// works reports whether the cluster of a Work has a worker.
	works func(work client.ObjectKey) bool
	// serves reports whether a cluster should have a worker.
	serves func(*clusterv1alpha1.Cluster) bool
}

// worker returns a worker for a cluster. It does not run yet.
func (p *parts) worker(cluster string, others elsewhere) *worker {
	queue, manifests := waitqueue.New(), manifest.NewCache()
	applied, pauses := records.New(p.opts.Seal), backoff.New(p.opts.Clock)
	ends, renames := p.workFinalizer(), &ownermeta.Renames{}
	asked := owners.New(p.hub, manifests, ends)
	inspector := drift.New(cluster, p.retention, pauses, p.events, p.drifts)
	way := link{cluster: cluster, connected: p.connected}
	closed := gate{held: func() bool { return p.opts.Hold != nil && p.opts.Hold(cluster) != nil }}
	last := deletionrecheck.New(p.hub, deletionrecheck.Options{Bindings: p.opts.Serves == nil, Hub: p.opts.Hub, Answers: p.opts.Answers, Returns: &p.returns, Woke: p.woke, Clock: p.opts.Clock})
	announced, pods := &cascadeguard.Announced{}, symptoms.New(p.opts.Clock, p.opts.PodsDelay)
	removes := &remover{link: way, gate: closed, owners: asked, manifests: manifests, guard: cascadeguard.New(p.hub), last: last, tries: queue.Retries, clock: p.opts.Clock}
	return &worker{
		cluster: cluster, elsewhere: others, hub: p.hub, queue: queue, owners: asked, renames: renames, dispatch: p.dispatch,
		memories: []memory{queue, manifests, applied, asked, inspector, pauses, renames, p.delayed, announced, pods, last},

		reader:   &workReader{hub: p.hub, wrote: p.wrote, finalizer: ends, connected: p.connected, manifests: manifests, records: applied},
		lifetime: &lifetime{finalizer: ends, manifests: manifests, remover: removes, last: last},
		applier: &applier{
			owners: asked, drift: inspector, gate: closed, pauses: pauses, sending: &owners.Sending{},
			sender:  &sender{retention: p.retention, owners: asked, clock: p.opts.Clock},
			faults:  &faults{link: way, tries: queue.Retries, queue: queue},
			records: applied, renames: renames, releases: &releases{hub: p.hub, queue: queue},
		},
		pruner:    &pruner{manifests: manifests, remover: removes},
		describer: &describer{clock: p.opts.Clock, records: applied, symptoms: pods},
		reporter: &reporter{
			hub: p.hub, wrote: p.wrote, delayed: p.delayed, records: applied, finalizer: ends, events: p.events, clock: p.opts.Clock, announced: announced,
		},
	}
}

// workers are the workers of all clusters. Use newWorkers. It is safe for use by several
// goroutines.
type workers struct {
	parts  *parts
	serves func(*clusterv1alpha1.Cluster) bool
	tasks  *taskgroup.Group

	mu      sync.RWMutex
	running map[string]running // by cluster; the empty name has Works of clusters that are gone
}

// running is a worker that runs, and how to stop it.
type running struct {
	worker *worker
	task   *taskgroup.Task
}

func newWorkers(p *parts, serves func(*clusterv1alpha1.Cluster) bool) *workers {
	return &workers{parts: p, serves: serves, tasks: taskgroup.New(), running: map[string]running{}}
}

// assemble returns a cluster's worker, which does not run yet.
func (w *workers) assemble(cluster string) *worker {
	return w.parts.worker(cluster, elsewhere{
		works:  func(work client.ObjectKey) bool { return w.ofWork(work) != nil },
		serves: w.serves,
	})
}

// of returns the worker of a cluster; nil if none runs.
func (w *workers) of(cluster string) *worker {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.running[cluster].worker
}

// ofWork returns the worker of a Work's cluster; nil if none runs.
func (w *workers) ofWork(work client.ObjectKey) *worker {
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace)
	if !ok {
		return nil
	}
	return w.of(cluster)
}

// waiting counts the Works of all clusters that wait, by the Event of their cause.
func (w *workers) waiting() map[int]int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	out := map[int]int{}
	for _, r := range w.running {
		for event, n := range r.worker.queue.Waiting() {
			out[event] += n
		}
	}
	return out
}

// release puts those Works of a cluster back in the queue whose cause matches.
func (w *workers) release(cluster string, match func(waitqueue.Cause) bool) {
	if worker := w.of(cluster); worker != nil {
		worker.queue.Release(match)
	}
}

// releaseAll does so for all clusters.
func (w *workers) releaseAll(match func(waitqueue.Cause) bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, r := range w.running {
		r.worker.queue.Release(match)
	}
}

// open starts the worker of a cluster, if it does not run.
func (w *workers) open(ctx context.Context, cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[cluster].worker != nil {
		return
	}
	side := w.parts.opts.Workers
	worker := w.assemble(cluster)
	runs, err := controller.NewUnmanaged(workerName(cluster), controller.Options{
		Reconciler:              worker,
		MaxConcurrentReconciles: side,
		NewQueue:                fairqueue.By(side, tenantOf(ctx, w.parts.hub)),
		SkipNameValidation:      ptr.To(true),
		RecoverPanic:            ptr.To(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoff.FirstRetry, backoff.LastRetry),
		LogConstructor:          workerLogger(log.FromContext(ctx), cluster),
	})
	if err == nil {
		err = runs.Watch(source.Func(worker.attach))
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "make a cluster worker", "cluster", cluster)
		return
	}
	task := w.tasks.Go(func(ctx context.Context) {
		if err := runs.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "run a cluster worker", "cluster", cluster)
		}
	})
	w.running[cluster] = running{worker: worker, task: task}
}

// close ends the worker of a cluster, if there is one.
func (w *workers) close(cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.running[cluster]; r.worker != nil {
		delete(w.running, cluster)
		r.task.Stop()
		w.parts.drifts.Forget(cluster)
	}
}

// run keeps the workers running until the context ends.
func (w *workers) run(ctx context.Context) { w.tasks.Run(ctx) }

// tenantOf returns a function that returns the tenant of a Work, by which the queue is fair: the namespace of its
// binding, or of the quota of which it carries a share. Works of cluster-scoped bindings, those that people wrote, and
// those that are gone have none, and count as one tenant's.
func tenantOf(ctx context.Context, hub client.Reader) func(reconcile.Request) string {
	return func(req reconcile.Request) string {
		work := &workv1alpha1.Work{}
		if err := hub.Get(ctx, req.NamespacedName, work, unsafeGet); err != nil {
			return "" // good enough: the tenant decides only the order
		}
		if quota, is := plan.ShareOf(work); is {
			return quota.Namespace
		}
		binding, _ := bindings.OwnerOf(work)
		return binding.Namespace
	}
}

func workerName(cluster string) string {
	if cluster == "" {
		return "execution"
	}
	return "execution-" + cluster
}

func workerLogger(base logr.Logger, cluster string) func(*reconcile.Request) logr.Logger {
	base = base.WithValues("controller", "execution", "cluster", cluster)
	return func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return base
		}
		return base.WithValues("work", klog.KRef(req.Namespace, req.Name))
	}
}
