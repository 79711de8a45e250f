package status

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// inbox is the loop's queue, for events that no watch sends.
type inbox struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the loop runs
}

// attach keeps the queue.
func (i *inbox) attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = queue
	return nil
}

func (i *inbox) add(key client.ObjectKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queue != nil {
		i.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// Reinterpret enqueues the bindings of all templates of the
// kinds, whose rules have changed. Before the loop runs there is
// nothing to do: it reconciles all bindings when it starts.
func (r *Reconciler) Reinterpret(ctx context.Context, affects func(schema.GroupVersionKind) bool) {
	err := bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		if affects(bindings.TemplateOf(b).GroupVersionKind) {
			r.inbox.add(client.ObjectKeyFromObject(b))
		}
	})
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Statuses are not added up anew")
	}
}
