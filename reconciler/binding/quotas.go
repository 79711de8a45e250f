package binding

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// quotasOf returns the quotas of a namespace; none for an empty name, or if quotas are ignored.
func (r *Reconciler) quotasOf(ctx context.Context, namespace string) ([]*policyv1alpha1.FederatedResourceQuota, error) {
	if namespace == "" || r.opts.IgnoreQuotas {
		return nil, nil
	}
	var list policyv1alpha1.FederatedResourceQuotaList
	if err := r.works.hub.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the quotas of %s: %w", namespace, err)
	}
	out := make([]*policyv1alpha1.FederatedResourceQuota, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// quotaEvents enqueues the bindings of a namespace whose quotas change, as a change decides whether overrides may raise
// resources.
func (r *Reconciler) quotaEvents() handler.EventHandler {
	enqueue := func(ctx context.Context, quota client.Object, q queue) {
		err := bindings.Each(ctx, r.works.hub, func(b workv1alpha2.Binding) { q.Add(requestFor(b)) }, client.InNamespace(quota.GetNamespace()))
		if err != nil {
			log.FromContext(ctx).Error(err, "find the bindings of a namespace", "namespace", quota.GetNamespace())
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList { // at the start bindingEvents enqueues every binding
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}
