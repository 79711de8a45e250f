package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/taskgroup"
)

// memberWatch is the watch over one member, and what the connection was made from.
type memberWatch struct {
	member     *members.Member
	task       *taskgroup.Task
	observed   *observed
	uid        types.UID // of the Cluster that the connection was made for
	generation int64     // of the same
	certified  string    // the name that its certificate is checked for
	stale      bool      // its Secret has changed since
	seen       *observation
}

// suits reports whether the connection is the one that the Cluster asks for.
func (w *memberWatch) suits(cluster *clusterv1alpha1.Cluster) bool {
	return !w.stale && w.uid == cluster.UID && w.generation == cluster.Generation && w.certified == certified(cluster)
}

// certified returns the name that the member's certificate is checked for, if it
// is not that of its address.
func certified(cluster *clusterv1alpha1.Cluster) string {
	return cluster.Annotations[clusterv1alpha1.TLSServerNameAnnotation]
}

// memberWatches are the watches over all members. What they see brings the Clusters into the queue.
// It is safe for use by several goroutines.
type memberWatches struct {
	registry *members.Registry
	events   loop.Recorder
	edits    atomic.Uint64 // counts changes of Secrets with credentials

	mu        sync.Mutex
	byCluster map[string]*memberWatch
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the loop runs
}

func newMemberWatches(registry *members.Registry, events loop.Recorder) *memberWatches {
	return &memberWatches{registry: registry, events: events, byCluster: map[string]*memberWatch{}}
}

// setQueue is a source.Func. What is seen of a member is no event of the hub, so it enters the queue directly.
func (w *memberWatches) setQueue(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

// wake enqueues the Clusters of all watches, and others, once the loop runs.
func (w *memberWatches) wake(others []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		return
	}
	for _, name := range append(others, slices.Collect(maps.Keys(w.byCluster))...) {
		w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
}

// get returns a copy of the watch over a cluster; nil if there is none.
func (w *memberWatches) get(cluster string) *memberWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if have := w.byCluster[cluster]; have != nil {
		now := *have
		return &now
	}
	return nil
}

// start has a member watched by next in place of the watch before, which ends. A watch over the same member is
// kept and only takes over what the Cluster says now: starting anew would list everything again. It returns what
// the kept watch has seen, and whether a new one began. edits is how many changes of Secrets were known before the
// connection was made: if there were more since, its credentials may be old.
func (w *memberWatches) start(next *memberWatch, edits uint64, models []clusterv1alpha1.ResourceModel, begin func() *taskgroup.Task) (*observation, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, stale := next.member.Name(), w.edits.Load() != edits
	have := w.byCluster[name]
	if have != nil && have.member == next.member {
		have.generation, have.certified, have.stale = next.generation, next.certified, stale
		have.observed.sums.CountBy(models)
		return have.seen, false
	}
	if have != nil {
		have.task.Stop()
	}
	next.stale = stale
	next.observed.sums.CountBy(models)
	w.byCluster[name] = next
	next.task = begin()
	return nil, true
}

// observed keeps what was seen of a member and enqueues its Cluster. A watch that was replaced is ignored.
func (w *memberWatches) observed(from *memberWatch, o observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := from.member.Name()
	if w.byCluster[name] != from {
		return
	}
	if before := from.seen; o.refused != "" && (before == nil || before.refused != o.refused) {
		w.events.Event(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: from.uid}}, corev1.EventTypeWarning,
			clusterv1alpha1.EventReasonCopyRefused, "A copy of this control plane, "+o.refused+", wanted to act in this cluster, and was refused: stop it")
	}
	from.seen = &o
	w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
}

// secretChanged marks the connection to a cluster stale, as the Secret with its credentials has changed.
func (w *memberWatches) secretChanged(cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.edits.Add(1)
	if have := w.byCluster[cluster]; have != nil {
		have.stale = true
	}
}

// stop ends the watch over a member and closes its connection.
func (w *memberWatches) stop(cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if have := w.byCluster[cluster]; have != nil {
		have.task.Stop()
		delete(w.byCluster, cluster)
	}
	w.registry.Disconnect(cluster)
}
