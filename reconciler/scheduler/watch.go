package scheduler

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	c, err := controller.New("scheduler", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: r.opts.Workers,
	})
	if err != nil {
		return fmt.Errorf("set up the scheduler: %w", err)
	}
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := c.Watch(source.Kind(mgr.GetCache(), kind, r.bindingEvents(), decisive())); err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, r.clusterEvents())); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	return nil
}

// decisive lets those changes of a binding through that a placement depends on.
func decisive() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}}
}

func (r *Reconciler) bindingEvents() handler.EventHandler {
	add := func(obj client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if !r.echo.Observed(e.ObjectNew.(workv1alpha2.Binding)) {
				add(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.echo.Gone(client.ObjectKeyFromObject(e.Object))
			add(e.Object, q)
		},
	}
}

// clusterEvents enqueues the bindings that a change of a cluster may move.
func (r *Reconciler) clusterEvents() handler.TypedEventHandler[*clusterv1alpha1.Cluster, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[*clusterv1alpha1.Cluster, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster], q queue) {
			r.snapshots.Invalidate()
			if !e.IsInInitialList { // at the start every binding is looked at anyway
				r.enqueueAffected(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], q queue) {
			r.snapshots.Invalidate()
			if matters(e.ObjectOld, e.ObjectNew) {
				r.enqueueAffected(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*clusterv1alpha1.Cluster], q queue) {
			r.snapshots.Invalidate()
			r.enqueueAffected(ctx, q, e.Object)
		},
	}
}

func (r *Reconciler) enqueueAffected(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], versions ...*clusterv1alpha1.Cluster) {
	err := bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		if affects(b.BindingSpec(), versions...) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: b.GetNamespace(), Name: b.GetName()}})
		}
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings that a cluster affects", "cluster", versions[0].Name)
	}
}

// matters says whether placements may depend on what changed. Free resources
// do not count: nothing is moved because they changed, and a binding that
// waits for room asks again by itself.
func matters(before, after *clusterv1alpha1.Cluster) bool {
	return before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(before.Status.APIEnablements, after.Status.APIEnablements)
}

// affects says whether a change between versions of a cluster may change the
// placement: the binding runs there, or one of its affinities means one of the
// versions.
func affects(spec *workv1alpha2.ResourceBindingSpec, versions ...*clusterv1alpha1.Cluster) bool {
	for _, target := range spec.Clusters {
		if target.Name == versions[0].Name {
			return true
		}
	}
	p := spec.Placement
	if p == nil {
		return true
	}
	if len(p.ClusterAffinities) == 0 {
		return meansAny(p.ClusterAffinity, versions)
	}
	for i := range p.ClusterAffinities {
		term := &p.ClusterAffinities[i]
		if meansAny(&term.ClusterAffinity, versions) {
			return true
		}
		for j := range term.OverflowAffinities {
			if meansAny(&term.OverflowAffinities[j].ClusterAffinity, versions) {
				return true
			}
		}
	}
	return false
}

func meansAny(affinity *policyv1alpha1.ClusterAffinity, versions []*clusterv1alpha1.Cluster) bool {
	for _, c := range versions {
		if selector.Cluster(c, affinity) {
			return true
		}
	}
	return false
}
