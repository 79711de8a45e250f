package dependency

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// Reinterpret evaluates again what templates depend on, for the kinds whose customizations or
// webhooks changed.
func (r *Reconciler) Reinterpret(ctx context.Context, affects func(schema.GroupVersionKind) bool) {
	err := bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		if involved(b) && affects(bindings.TemplateOf(b).GroupVersionKind) {
			r.users.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}, true)
		}
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "look again at what templates of some kinds need")
	}
}
