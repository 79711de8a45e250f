package agents

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// tells tells of what agents say of their clusters and nobody approved, once each
// time that it changes. It brings nothing into the queue.
func (r *Reconciler) tells() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) {
			if c, ok := e.Object.(*clusterv1alpha1.Cluster); ok && !e.IsInInitialList {
				r.tell(c, "")
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			if c, ok := e.ObjectNew.(*clusterv1alpha1.Cluster); ok {
				r.tell(c, e.ObjectOld.GetAnnotations()[identity.RequestedAnnotation])
			}
		},
	}
}

func (r *Reconciler) tell(c *clusterv1alpha1.Cluster, before string) {
	text := c.Annotations[identity.RequestedAnnotation]
	asked, err := identity.ParseProperties(text)
	if r.events == nil || text == before || err != nil || asked.IsZero() {
		return
	}
	r.events.Event(c, corev1.EventTypeWarning, clusterv1alpha1.EventReasonPropertiesNotApproved, fmt.Sprintf(
		"its agent says %s, which does not count until it is approved: flotilla patch cluster %s --type merge -p '%s'", asked.Words(), c.Name, asked.Patch()))
}
