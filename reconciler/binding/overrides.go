package binding

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// regrouped returns the overrides whose choice of the cluster changes with a change of
// the cluster.
func (r *Reconciler) regrouped(before, after *clusterv1alpha1.Cluster) []policyv1alpha1.Override {
	var out []policyv1alpha1.Override
	r.switches.EachOverride(func(o policyv1alpha1.Override) {
		if override.Regroups(o, before, after) {
			out = append(out, o)
		}
	})
	return out
}

// clusterEvents enqueues the bindings on a cluster that joins, those that leave other clusters
// for one that is reachable again, and those whose overrides select clusters by what changed of it.
func (r *Reconciler) clusterEvents() handler.TypedEventHandler[*clusterv1alpha1.Cluster, ctrl.Request] {
	return handler.TypedFuncs[*clusterv1alpha1.Cluster, ctrl.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster], q queue) {
			if !e.IsInInitialList {
				r.addOnCluster(ctx, q, e.Object.Name, nil)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], q queue) {
			if silent(e.ObjectOld) && !silent(e.ObjectNew) {
				r.addLeaving(ctx, q, e.ObjectNew.Name)
			}
			if !selectable(e.ObjectOld, e.ObjectNew) {
				return
			}
			if overrides := r.regrouped(e.ObjectOld, e.ObjectNew); len(overrides) > 0 {
				r.addOnCluster(ctx, q, e.ObjectNew.Name, overrides)
			}
		},
	}
}

// addOnCluster enqueues the bindings on a cluster; if there are any overrides, only those that one of them
// touches.
func (r *Reconciler) addOnCluster(ctx context.Context, q queue, cluster string, overrides []policyv1alpha1.Override) {
	err := bindings.Each(ctx, r.works.hub, func(b workv1alpha2.Binding) {
		if len(overrides) == 0 || touches(ctx, r.templates.Get, b, overrides...) {
			q.Add(requestFor(b))
		}
	}, client.MatchingFields{bindings.ByCluster: cluster})
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings on a cluster", "cluster", cluster)
	}
}
