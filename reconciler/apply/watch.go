package apply

import (
	"context"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/reconciler/apply/awaited"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/references"
	"github.com/flotilla-io/flotilla/reconciler/apply/wakes"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

const (
	// firstRetry and lastRetry are the shortest and the longest back-off after errors.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Register adds the loop to a manager.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := dependencies.Index(ctx, mgr); err != nil {
		return err
	}
	wake := wakes.Wakes{Hub: r.deps.Hub, States: r.lastApplied}
	gone := &wakes.Deletions{Wakes: wake, Scheme: r.deps.Hub.Scheme(), Suspended: r.suspended}
	if r.deps.Templates != nil {
		r.deps.Templates.Listen(templatestore.Listener{Changed: gone.Changed})
	}
	if err := references.Watch(mgr, gone.Referred); err != nil {
		return err
	}
	if err := wake.WatchClusters(mgr, &gone.Inbox, r.opts.Clock); err != nil {
		return err
	}
	if err := awaited.New(wake, &gone.Inbox).Register(mgr); err != nil {
		return err
	}
	loop := ctrl.NewControllerManagedBy(mgr)
	for _, kind := range wakes.Kinds() {
		loop.Watches(kind, gone.OfKind())
	}
	for _, kind := range origins.Kinds() {
		loop.Watches(kind.New(), handler.EnqueueRequestsFromMapFunc(wake.UsersOf), builder.WithPredicates(wakes.NewArtifact()))
	}
	return loop.
		Named("apply").
		For(&kustomizev1.Kustomization{}, builder.WithPredicates(r.runs.Predicate(), wakes.Asked(), r.own.Endings())).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.Dependents), builder.WithPredicates(dependencies.Changed())).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.Siblings), builder.WithPredicates(dependencies.MovedOn())).
		Watches(&kustomizev1.Kustomization{}, wake.WhenKustomizationChanges(), builder.WithPredicates(dependencies.MovedOn())).
		WatchesRawSource(&gone.Inbox).
		Watches(&clusterv1alpha1.Cluster{}, wake.WhenClaimsStay()).
		Watches(&workv1alpha2.ResourceBinding{}, wake.WhenBindingChanges()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, wake.WhenBindingChanges()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Concurrent,
			NewQueue:                fairqueue.ByNamespace(r.opts.Concurrent),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}
