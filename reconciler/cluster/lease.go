package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/sleepdetector"
)

// The condition Ready of a cluster in pull mode that is silent.
const (
	neverReported = "the cluster's agent has not reported yet"
	silent        = "the cluster's agent has stopped reporting"
)

// judge decides about a cluster in pull mode: Ready is Unknown when its agent
// has neither renewed the cluster's Lease nor turned Ready for a while.
func (r *Reconciler) judge(_ context.Context, s *state) (loop.Next, error) {
	r.watches.stop(s.cluster.Name) // it may have been in push mode
	s.status = s.cluster.Status.DeepCopy()
	r.opts.waits(s, r.events)
	current := readiness(s.cluster)
	last := r.heartbeats.last(s.cluster.Name, current)
	grace, reason, message := r.opts.Silence.Grace, clusterv1alpha1.ClusterStatusUnknownReason, silent
	if current == nil {
		grace, reason, message = r.opts.Silence.Startup, clusterv1alpha1.ClusterStatusNeverUpdatedReason, neverReported
	} else if current.Status == metav1.ConditionUnknown {
		return loop.Next{}, nil // the agent sets it when it is back
	}
	now := r.opts.Clock.Now()
	if left := last.Add(grace).Sub(now); left > 0 {
		return loop.Next{After: left}, nil
	}
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(last),
	})
	return loop.Next{}, nil
}

// asleep is how long this process has not run when what it heard of clusters before counts no more.
const asleep = 15 * time.Second

// heartbeats record when clusters in pull mode last gave a sign, by the hub's
// own clock: the agents' clocks may be wrong. A renewed Lease wakes nobody up.
type heartbeats struct {
	clock clock.PassiveClock
	awake *sleepdetector.Watch

	mu sync.Mutex
	of map[string]heartbeat
}

type heartbeat struct {
	at    time.Time
	ready *metav1.Condition
	// beat is when the Lease was last renewed, since when it first was after the agent
	// had started, had missed more than one renewal, or had no answer of the member.
	beat, since       time.Time
	renewed, acquired *metav1.MicroTime
	// silent: the member did not answer the agent at that renewal.
	silent bool
}

func newHeartbeats(c clock.WithTicker) *heartbeats {
	return &heartbeats{clock: c, awake: sleepdetector.New(c, asleep), of: map[string]heartbeat{}}
}

// last returns when the cluster was last heard of: now, if this is the first
// time that it is asked about, or if its condition Ready is another one. A process that
// slept heard nobody, and counts from when it woke.
func (p *heartbeats) last(cluster string, ready *metav1.Condition) time.Time {
	woke, _ := p.awake.Since()
	p.mu.Lock()
	defer p.mu.Unlock()
	is, ok := p.of[cluster]
	if !ok || !equality.Semantic.DeepEqual(is.ready, ready) {
		is.at, is.ready = p.clock.Now(), ready.DeepCopy()
		p.of[cluster] = is
	}
	if is.at.Before(woke) {
		return woke
	}
	return is.at
}

// renewed records a Lease as it is now.
func (p *heartbeats) renewed(lease client.Object) {
	l, ok := lease.(*coordinationv1.Lease)
	if !ok || l.Namespace != workv1alpha2.NamespaceKarmadaCluster {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	is, known := p.of[l.Name]
	if known && is.renewed.Equal(l.Spec.RenewTime) {
		return
	}
	now := p.clock.Now()
	was := is.silent
	is.silent = l.Spec.RenewTime != nil && l.Annotations[clusterv1alpha1.SilentAnnotation] == l.Spec.RenewTime.UTC().Format(metav1.RFC3339Micro)
	if was && !is.silent || !is.acquired.Equal(l.Spec.AcquireTime) || now.Sub(is.beat) > time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0))*time.Second/2 {
		is.since = now
	}
	is.at, is.beat, is.renewed, is.acquired = now, now, l.Spec.RenewTime.DeepCopy(), l.Spec.AcquireTime.DeepCopy()
	p.of[l.Name] = is
}

// clusters returns the names of those that are judged.
func (p *heartbeats) clusters() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.of))
}

// forget drops a cluster that is gone.
func (p *heartbeats) forget(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, cluster)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Create implements handler.EventHandler.
func (p *heartbeats) Create(_ context.Context, e event.CreateEvent, _ queue) { p.renewed(e.Object) }

// Update implements handler.EventHandler.
func (p *heartbeats) Update(_ context.Context, e event.UpdateEvent, _ queue) { p.renewed(e.ObjectNew) }

// Delete implements handler.EventHandler.
func (p *heartbeats) Delete(_ context.Context, e event.DeleteEvent, _ queue) {
	if e.Object.GetNamespace() == workv1alpha2.NamespaceKarmadaCluster {
		p.forget(e.Object.GetName())
	}
}

// Generic implements handler.EventHandler.
func (p *heartbeats) Generic(context.Context, event.GenericEvent, queue) {}
