package apply

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/reconciler/apply/watches"
)

const (
	defaultWorkers = 5
	// firstRetry and lastRetry are the shortest and the longest back-off after errors.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Register adds the loop to a manager.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	loop, err := watches.Of(ctx, mgr, watches.Deps{
		Hub: r.deps.Hub, States: r.lastApplied, Suspended: r.suspended, Templates: r.deps.Templates, Clock: r.opts.Clock,
		Own: []predicate.Predicate{r.runs.Predicate(), r.store.ForgetDeleted()},
	})
	if err != nil {
		return err
	}
	return loop.
		Named("apply").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Workers,
			NewQueue:                fairqueue.ByNamespace(r.opts.Workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}
