package taintpolicy

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/taints"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

const (
	// workers is how many clusters are worked on side by side: a policy may be about all.
	workers = 4
	// stale is when to look again at what somebody else has changed meanwhile.
	stale = 50 * time.Millisecond
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Lost has the loop make a ClusterTaintPolicy at its start, if there is none of that name, by
	// which what runs in lost clusters is moved.
	Lost bool
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Reconciler taints clusters. Use New.
type Reconciler struct {
	hub    client.Client
	events loop.Recorder
	lost   bool
	clock  clock.PassiveClock
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, events loop.Recorder, o Options) *Reconciler {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reconciler{hub: hub, events: events, lost: o.Lost, clock: o.Clock}
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("taintpolicy").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NewQueue: fairqueue.New[reconcile.Request]}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(clusterChanges())).
		Watches(&policyv1alpha1.ClusterTaintPolicy{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(policyChanges())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the loop of taint policies: %w", err)
	}
	if !r.lost {
		return nil
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return makeLost(ctx, r.hub) }))
}

// all names all clusters: a policy that is about one less, or one more, is looked at
// there.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list clusters")
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].Name = list.Items[i].Name
	}
	return out
}

// state is one look at one cluster.
type state struct {
	name     string
	cluster  *clusterv1alpha1.Cluster // shared: not to be changed
	decision taints.Decision
}

// Reconcile brings the taints of one cluster up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &state{name: req.Name}, r.read, r.decide, r.write))
}

// read finds the cluster. One that is being deleted is left alone.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	s.cluster = &clusterv1alpha1.Cluster{}
	err := r.hub.Get(ctx, client.ObjectKey{Name: s.name}, s.cluster, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return loop.Next{Done: true}, nil
	case err != nil:
		return loop.Next{}, fmt.Errorf("read cluster %s: %w", s.name, err)
	}
	return loop.Next{Done: !s.cluster.DeletionTimestamp.IsZero()}, nil
}

// decide works out the taints. It ends the pass where the cluster has them already.
func (r *Reconciler) decide(ctx context.Context, s *state) (loop.Next, error) {
	var list policyv1alpha1.ClusterTaintPolicyList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return loop.Next{}, fmt.Errorf("list taint policies: %w", err)
	}
	s.decision = taints.Decide(list.Items, s.cluster, r.clock.Now())
	return loop.Next{Done: !s.decision.Changed()}, nil
}

// write writes the taints, and records an Event.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	updated := s.cluster.DeepCopy()
	updated.Spec.Taints = s.decision.Taints
	// Taints are a list that users and the loop of clusters edit too: what was read must
	// still stand.
	patch := client.MergeFromWithOptions(s.cluster, client.MergeFromWithOptimisticLock{})
	switch err := r.hub.Patch(ctx, updated, patch); {
	case apierrors.IsNotFound(err):
		return loop.Next{}, nil
	case apierrors.IsConflict(err):
		return loop.Next{After: stale}, nil
	case err != nil:
		if bindings.IsRefused(err) {
			r.events.Event(s.cluster, corev1.EventTypeWarning, clusterv1alpha1.EventReasonTaintClusterFailed, err.Error())
		}
		return loop.Next{}, fmt.Errorf("write the taints of cluster %s: %w", s.name, err)
	}
	r.events.Event(updated, corev1.EventTypeNormal, clusterv1alpha1.EventReasonTaintClusterSucceed, s.decision.String())
	log.FromContext(ctx).Info("Changed the taints of a cluster", "changes", s.decision.String())
	return loop.Next{}, nil
}
