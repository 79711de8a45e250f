package execution

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/crew"
)

// A Work that failed is tried again after firstRetry, then twice that, up to
// lastRetry.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Events in a member that Works wait for.
const (
	onRetry     = iota // nothing but time
	onProof            // the member is connected and is the registered cluster
	onSync             // the watch of a kind has seen the whole list
	onKinds            // the member may serve other kinds
	onNamespace        // a namespace was made
)

// cause is what a Work waits for.
type cause struct {
	event     int
	kind      schema.GroupVersionKind // onSync
	namespace string                  // onNamespace
}

// lane carries the Works of one cluster.
type lane struct {
	*Reconciler
	cluster string // empty: Works whose Cluster is gone
	hand    *crew.Hand
	retries workqueue.TypedRateLimiter[client.ObjectKey]
	pace    *pace

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the workers run
	waiting map[client.ObjectKey]cause
	events  int // counts releases, so that none is missed between a look and a wait
	parsed  map[client.ObjectKey]parsed
	sent    map[client.ObjectKey]sent
}

// parsed is what the manifests of one generation of a Work are.
type parsed struct {
	uid        types.UID
	generation int64
	manifests  []manifest
}

// sent is the record of what was applied to a member of one Work.
type sent struct {
	uid     types.UID
	applied []workv1alpha1.AppliedHash
}

// open starts the lane of a cluster, if it does not run.
func (r *Reconciler) open(ctx context.Context, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lanes[cluster] != nil {
		return
	}
	l := r.newLane(cluster)
	workers, err := controller.NewUnmanaged(l.name(), controller.Options{
		Reconciler:              l,
		MaxConcurrentReconciles: r.options.Workers,
		SkipNameValidation:      ptr.To(true),
		RecoverPanic:            ptr.To(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		LogConstructor:          l.logger(log.FromContext(ctx)),
	})
	if err == nil {
		err = workers.Watch(source.Func(l.attach))
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "open a lane", "cluster", cluster)
		return
	}
	r.lanes[cluster] = l
	l.hand = r.crew.Join(func(ctx context.Context) {
		if err := workers.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "run a lane", "cluster", cluster)
		}
	})
}

func (r *Reconciler) newLane(cluster string) *lane {
	return &lane{
		Reconciler: r,
		cluster:    cluster,
		retries:    workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](firstRetry, lastRetry),
		pace:       newPace(r.options.Clock),
		waiting:    map[client.ObjectKey]cause{},
		parsed:     map[client.ObjectKey]parsed{},
		sent:       map[client.ObjectKey]sent{},
	}
}

// close ends the lane of a cluster, if there is one.
func (r *Reconciler) close(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lanes[cluster]; l != nil {
		delete(r.lanes, cluster)
		l.hand.Stop()
	}
}

func (l *lane) name() string {
	if l.cluster == "" {
		return "execution"
	}
	return "execution-" + l.cluster
}

func (l *lane) logger(base logr.Logger) func(*reconcile.Request) logr.Logger {
	base = base.WithValues("controller", "execution", "cluster", l.cluster)
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
	l.mu.Lock()
	l.queue = queue
	l.mu.Unlock()
	if l.cluster != "" {
		l.load(ctx, workv1alpha2.ExecutionNamespace(l.cluster))
	}
	return nil
}

// load puts the Works of an execution namespace in the queue. Those of clusters
// that are gone matter only if they are being deleted.
func (l *lane) load(ctx context.Context, namespace string) {
	var works workv1alpha1.WorkList
	if err := l.hub.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list works", "namespace", namespace)
		return
	}
	for i := range works.Items {
		work := &works.Items[i]
		if l.cluster == "" && work.DeletionTimestamp.IsZero() {
			continue
		}
		l.addLater(client.ObjectKeyFromObject(work))
	}
}

func (l *lane) add(key client.ObjectKey) {
	if queue := l.line(); queue != nil {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (l *lane) addLater(key client.ObjectKey) {
	switch queue := l.line().(type) {
	case nil:
	case priorityqueue.PriorityQueue[reconcile.Request]:
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, reconcile.Request{NamespacedName: key})
	default:
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (l *lane) line() workqueue.TypedRateLimitingInterface[reconcile.Request] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue
}

// begin ends a Work's wait and returns the count of events so far.
func (l *lane) begin(key client.ObjectKey) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, key)
	return l.events
}

// wait has a Work looked at again when its cause comes to pass. It returns false
// if anything has come to pass since the given count.
func (l *lane) wait(key client.ObjectKey, c cause, since int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events != since {
		return false
	}
	l.waiting[key] = c
	return true
}

// release puts the Works back in the queue whose cause matches, as if they had
// never failed.
func (l *lane) release(match func(cause) bool) {
	var due []client.ObjectKey
	l.mu.Lock()
	l.events++
	for key, c := range l.waiting {
		if match(c) {
			delete(l.waiting, key)
			due = append(due, key)
		}
	}
	l.mu.Unlock()
	for _, key := range due {
		l.retries.Forget(key)
		l.add(key)
	}
}

// forget drops what is kept of a Work that is gone.
func (l *lane) forget(key client.ObjectKey) {
	l.mu.Lock()
	delete(l.waiting, key)
	delete(l.parsed, key)
	delete(l.sent, key)
	l.mu.Unlock()
	l.retries.Forget(key)
	l.pace.forget(key)
}
