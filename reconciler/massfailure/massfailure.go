package massfailure

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
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
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// stale is when to look again at what somebody else has changed meanwhile.
const stale = 50 * time.Millisecond

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// Breaker says when losses are too many at once.
	Breaker failover.Breaker
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

// Reconciler writes the condition on all clusters. Use New.
type Reconciler struct {
	hub    client.Client
	events loop.Recorder
	opts   Options
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, events loop.Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Reconciler{hub: hub, events: events, opts: opts}
}

// all is the one request: the loss of one cluster concerns the others.
var all = reconcile.Request{NamespacedName: client.ObjectKey{Name: "all"}}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{all} })
	err := ctrl.NewControllerManagedBy(mgr).
		Named("massfailure").
		WithOptions(controller.Options{NewQueue: fairqueue.New[reconcile.Request]}).
		Watches(&clusterv1alpha1.Cluster{}, toAll, builder.WithPredicates(losses())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the loop of mass failures: %w", err)
	}
	return nil
}

// losses lets clusters through that come or go, are lost or back, or whose loss is confirmed.
func losses() predicate.Predicate {
	says := func(c *clusterv1alpha1.Cluster) [3]string {
		out := [3]string{c.Annotations[clusterv1alpha1.ConfirmLostAnnotation]}
		if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); ready != nil {
			out[1], out[2] = string(ready.Status), ready.Reason
		}
		return out
	}
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			is, also := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && also && (was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() || says(was) != says(is) ||
				failover.Suspected(was) != failover.Suspected(is))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// fleet is the clusters of one look.
type fleet []clusterv1alpha1.Cluster

// Each implements failover.Fleet.
func (f fleet) Each(do func(*clusterv1alpha1.Cluster) bool) {
	for i := range f {
		if !do(&f[i]) {
			return
		}
	}
}

// state is one look at the fleet.
type state struct {
	clusters fleet // shared: not to be changed
	losses   failover.Losses
}

// Reconcile brings the condition of all clusters up to date.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &state{}, r.read, r.write))
}

func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	var list clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return loop.Next{}, fmt.Errorf("list clusters: %w", err)
	}
	s.clusters = list.Items
	s.losses = r.opts.Breaker.Losses(s.clusters, r.opts.Clock.Now())
	return loop.Next{}, nil
}

// write writes the condition where it changes. One cluster that cannot be written holds up no other.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	var next loop.Next
	if until := s.losses.Until; !until.IsZero() {
		next.After = max(until.Sub(r.opts.Clock.Now()), stale)
	}
	var failed []error
	for i := range s.clusters {
		was := &s.clusters[i]
		updated := was.DeepCopy()
		if !r.report(updated, s.losses) {
			continue
		}
		err := r.hub.Status().Patch(ctx, updated, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
		switch {
		case apierrors.IsConflict(err):
			next.After = stale
		case client.IgnoreNotFound(err) != nil:
			failed = append(failed, fmt.Errorf("write the status of cluster %s: %w", was.Name, err))
		case err == nil && !failover.Suspected(was) && failover.Suspected(updated):
			r.events.Event(updated, corev1.EventTypeWarning, clusterv1alpha1.MassFailureReason, message(was.Name, s.losses))
			log.FromContext(ctx).Info("nothing is moved off a cluster: many were lost at once", "cluster", was.Name)
		}
	}
	return next, errors.Join(failed...)
}

// report sets the condition of a cluster to what is suspected, and reports whether that changes it.
func (r *Reconciler) report(c *clusterv1alpha1.Cluster, losses failover.Losses) bool {
	if !losses.Suspected(c.Name) {
		return meta.RemoveStatusCondition(&c.Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected)
	}
	return meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionMassFailureSuspected, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.MassFailureReason,
		Message: message(c.Name, losses), LastTransitionTime: metav1.NewTime(r.opts.Clock.Now().UTC().Truncate(time.Second)),
	})
}

// message says what is suspected, and how to go on.
func message(cluster string, losses failover.Losses) string {
	whom := "them"
	if len(losses.Clusters) == 1 {
		whom = cluster
	}
	return fmt.Sprintf("%s: nothing is moved off %s, as it may be the control plane that sees nothing. If %s is lost: "+
		"flotilla kubectl annotate --overwrite cluster %s %s=$(date -u +%%FT%%TZ)", losses, whom, cluster, cluster, clusterv1alpha1.ConfirmLostAnnotation)
}
