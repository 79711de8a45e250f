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

// post is where one member is watched from.
type post struct {
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
func (p *post) suits(cluster *clusterv1alpha1.Cluster) bool {
	return !p.stale && p.uid == cluster.UID && p.generation == cluster.Generation && p.certified == certified(cluster)
}

// certified returns the name that the member's certificate is checked for, if it
// is not that of its address.
func certified(cluster *clusterv1alpha1.Cluster) string {
	return cluster.Annotations[clusterv1alpha1.TLSServerNameAnnotation]
}

// posts are from where members are watched, and the queue that what is seen there brings
// their Clusters into. It is safe for use by several goroutines.
type posts struct {
	registry *members.Registry
	recorder loop.Recorder
	edits    atomic.Uint64 // counts changes of Secrets with credentials

	mu        sync.Mutex
	byCluster map[string]*post
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the loop runs
}

func newPosts(registry *members.Registry, recorder loop.Recorder) *posts {
	return &posts{registry: registry, recorder: recorder, byCluster: map[string]*post{}}
}

// attach keeps the queue.
func (p *posts) attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = queue
	return nil
}

// wake brings in the Clusters of all posts, and others, once the loop runs.
func (p *posts) wake(others []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue == nil {
		return
	}
	for _, name := range append(others, slices.Collect(maps.Keys(p.byCluster))...) {
		p.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
}

// of returns a copy of the post of a cluster; nil if there is none.
func (p *posts) of(cluster string) *post {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.byCluster[cluster]; have != nil {
		now := *have
		return &now
	}
	return nil
}

// put has a member watched from next, and ends the watch of the post before. One that
// watches the same member stays, and takes over what the Cluster says by now. It returns
// what was seen from there, and whether a watch began. Edits is how many changes of Secrets
// were known before the connection was made.
func (p *posts) put(next *post, edits uint64, models []clusterv1alpha1.ResourceModel, begin func() *taskgroup.Task) (*observation, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, stale := next.member.Name(), p.edits.Load() != edits
	have := p.byCluster[name]
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
	p.byCluster[name] = next
	next.task = begin()
	return nil, true
}

// saw keeps what was seen of a member and brings its Cluster in.
func (p *posts) saw(from *post, o observation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := from.member.Name()
	if p.byCluster[name] != from {
		return
	}
	if before := from.seen; o.refused != "" && (before == nil || before.refused != o.refused) {
		p.recorder.Event(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: from.uid}}, corev1.EventTypeWarning,
			clusterv1alpha1.EventReasonCopyRefused, "A copy of this control plane, "+o.refused+", wanted to act in this cluster, and was refused: stop it")
	}
	from.seen = &o
	p.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
}

// edited says that the Secret with the credentials of a cluster has changed.
func (p *posts) edited(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edits.Add(1)
	if have := p.byCluster[cluster]; have != nil {
		have.stale = true
	}
}

// dismiss ends the watch over a member and closes its connection.
func (p *posts) dismiss(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.byCluster[cluster]; have != nil {
		have.task.Stop()
		delete(p.byCluster, cluster)
	}
	p.registry.Disconnect(cluster)
}
