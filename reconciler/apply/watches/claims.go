package watches

import (
	"context"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// WhenClaimsStay returns a handler that enqueues the owners of volume claims which a Cluster newly reports as kept, or
// does not report any more.
func (m MapFuncs) WhenClaimsStay() handler.EventHandler {
	turned := func(ctx context.Context, before, after *clusterv1alpha1.Cluster, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		ids := map[string]bool{}
		for _, claim := range volumes.Turned(before, after) {
			ids[inventory.ID{Namespace: claim.Namespace, Name: claim.Name, GroupKind: volumes.Kind()}.String()] = true
		}
		if len(ids) == 0 {
			return
		}
		for _, owner := range m.Find(ctx, func(ks *kustomizev1.Kustomization) bool {
			return ks.Status.Inventory != nil && slices.ContainsFunc(ks.Status.Inventory.Entries, func(e kustomizev1.ResourceRef) bool { return ids[e.ID] })
		}) {
			queue.AddAfter(owner, debounceTime)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, _ := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, _ := e.ObjectNew.(*clusterv1alpha1.Cluster)
			turned(ctx, before, after, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, _ := e.Object.(*clusterv1alpha1.Cluster)
			turned(ctx, before, nil, queue)
		},
	}
}
