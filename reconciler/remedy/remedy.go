package remedy

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/flotilla-io/flotilla/api/remedy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/remedies"
)

const (
	// workers is how many clusters are worked on side by side: a remedy may be about all.
	workers = 4
	// stale is when to look again at what somebody else has changed meanwhile.
	stale = 50 * time.Millisecond
)

// Reconciler writes the actions of clusters. Use New.
type Reconciler struct{ hub client.Client }

// New returns the loop. hub reads from a cache.
func New(hub client.Client) *Reconciler { return &Reconciler{hub: hub} }

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("remedy").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NewQueue: fairqueue.New[reconcile.Request]}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(clusterChanges())).
		Watches(&remedyv1alpha1.Remedy{}, handler.EnqueueRequestsFromMapFunc(r.concerned), builder.WithPredicates(remedyChanges())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the loop of remedies: %w", err)
	}
	return nil
}

// clusterChanges lets clusters through that are new, or whose conditions or actions are
// others. Remedies name clusters, and find them by nothing else.
func clusterChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			is, also := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && also && (was.UID != is.UID || !sameStatuses(was.Status.Conditions, is.Status.Conditions) ||
				!slices.Equal(was.Status.RemedyActions, is.Status.RemedyActions))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// sameStatuses reports whether conditions say the same, for whatever reason.
func sameStatuses(was, is []metav1.Condition) bool {
	return slices.EqualFunc(was, is, func(a, b metav1.Condition) bool { return a.Type == b.Type && a.Status == b.Status })
}

// remedyChanges lets remedies through that are new, say something else, or are gone.
// Those that a start finds come with all clusters.
func remedyChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc:  func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// concerned names the clusters that a remedy is about.
func (r *Reconciler) concerned(ctx context.Context, obj client.Object) []reconcile.Request {
	remedy, ok := obj.(*remedyv1alpha1.Remedy)
	if !ok {
		return nil
	}
	var list clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list clusters")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if name := list.Items[i].Name; remedies.Concerns(remedy, name) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		}
	}
	return out
}

// state is one look at one cluster.
type state struct {
	name    string
	cluster *clusterv1alpha1.Cluster // shared: not to be changed
	actions []string
}

// Reconcile brings the actions of one cluster up to date.
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

// decide works out the actions. It ends the pass where the status says so already.
func (r *Reconciler) decide(ctx context.Context, s *state) (loop.Next, error) {
	var list remedyv1alpha1.RemedyList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return loop.Next{}, fmt.Errorf("list remedies: %w", err)
	}
	s.actions = remedies.Actions(list.Items, s.cluster)
	return loop.Next{Done: slices.Equal(s.actions, s.cluster.Status.RemedyActions)}, nil
}

// write writes the actions, and nothing else.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	updated := s.cluster.DeepCopy()
	updated.Status.RemedyActions = s.actions
	// What was read must still stand: actions for conditions of before would not be
	// looked at again.
	patch := client.MergeFromWithOptions(s.cluster, client.MergeFromWithOptimisticLock{})
	switch err := r.hub.Status().Patch(ctx, updated, patch); {
	case apierrors.IsNotFound(err):
		return loop.Next{}, nil
	case apierrors.IsConflict(err):
		return loop.Next{After: stale}, nil
	case err != nil:
		return loop.Next{}, fmt.Errorf("write the actions for cluster %s: %w", s.name, err)
	}
	log.FromContext(ctx).Info("Wrote what is to be done about a cluster", "actions", s.actions)
	return loop.Next{}, nil
}
