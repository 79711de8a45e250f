package apply

import (
	"context"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/reconciler/apply/awaited"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/references"
	"github.com/flotilla-io/flotilla/reconciler/apply/wakes"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

const (
	// firstRetry and lastRetry bound the back-off after faults.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Templates tell of what happens to templates that somebody keeps a watch on.
type Templates interface {
	Listen(l templatestore.Listener)
}

// Register adds the loop to a manager.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := dependencies.Index(ctx, mgr); err != nil {
		return err
	}
	wake := wakes.Wakes{Hub: r.deps.Hub, States: r.lastApplied}
	gone := &wakes.Deletions{Wakes: wake, Scheme: r.deps.Hub.Scheme()}
	if r.deps.Templates != nil {
		r.deps.Templates.Listen(templatestore.Listener{Changed: gone.Changed})
	}
	if err := references.Watch(mgr, gone.Referred); err != nil {
		return err
	}
	loop := ctrl.NewControllerManagedBy(mgr)
	for _, kind := range awaited.Kinds() {
		loop.WatchesMetadata(kind.Object, kind.Handler(func(ctx context.Context, match func(*kustomizev1.Kustomization) bool) []reconcile.Request {
			return wake.Find(ctx, match)
		}))
	}
	return loop.
		Named("apply").
		For(&kustomizev1.Kustomization{}, builder.WithPredicates(r.runs.Predicate(), asked, r.own.Endings())).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(wake.UsersOf), builder.WithPredicates(newArtifact)).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.Dependents), builder.WithPredicates(dependencies.Changed())).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.Siblings), builder.WithPredicates(dependencies.MovedOn())).
		Watches(&kustomizev1.Kustomization{}, gone.OfKind()).
		Watches(&policyv1alpha1.PropagationPolicy{}, gone.OfKind()).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, gone.OfKind()).
		Watches(&policyv1alpha1.OverridePolicy{}, gone.OfKind()).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, gone.OfKind()).
		WatchesRawSource(&gone.Inbox).
		Watches(&workv1alpha2.ResourceBinding{}, wake.WhenBindingChanges()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, wake.WhenBindingChanges()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Concurrent,
			NewQueue:                fairqueue.ByNamespace(r.opts.Concurrent),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// asked lets pass what a person changed: not a status that was written here.
var asked = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// newArtifact lets pass a source whose artifact is another one.
var newArtifact = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*sourcev1.GitRepository)
		after, okAfter := e.ObjectNew.(*sourcev1.GitRepository)
		if !okBefore || !okAfter || after.Status.Artifact == nil {
			return false
		}
		return before.Status.Artifact == nil || before.Status.Artifact.Revision != after.Status.Artifact.Revision || before.Status.Artifact.Digest != after.Status.Artifact.Digest
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}
