package apply

import (
	"context"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

const (
	// firstRetry and lastRetry bound the back-off after faults.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
	// debounceTime lets the changes of a rollout come together before health is
	// looked at again.
	debounceTime = 250 * time.Millisecond
)

// Register adds the loop to a manager.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := dependencies.Index(ctx, mgr); err != nil {
		return err
	}
	wake := wakes{hub: r.deps.Hub, lastApplied: r.lastApplied}
	gone := &deletions{wakes: wake, scheme: r.deps.Hub.Scheme()}
	if r.deps.Templates != nil {
		r.deps.Templates.Listen(templatestore.Listener{Changed: gone.changed})
	}
	if err := references.Watch(mgr, gone.referred); err != nil {
		return err
	}
	loop := ctrl.NewControllerManagedBy(mgr)
	for _, kind := range awaited.Kinds() {
		loop.WatchesMetadata(kind.Object, kind.Handler(func(ctx context.Context, match func(*kustomizev1.Kustomization) bool) []reconcile.Request {
			return wake.find(ctx, match)
		}))
	}
	return loop.
		Named("apply").
		For(&kustomizev1.Kustomization{}, builder.WithPredicates(r.runs.Predicate(), asked, r.own.Endings())).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(wake.usersOf), builder.WithPredicates(newArtifact)).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.dependents), builder.WithPredicates(dependencies.Changed())).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.siblings), builder.WithPredicates(movedOn)).
		Watches(&kustomizev1.Kustomization{}, gone.ofKind()).
		Watches(&policyv1alpha1.PropagationPolicy{}, gone.ofKind()).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, gone.ofKind()).
		Watches(&policyv1alpha1.OverridePolicy{}, gone.ofKind()).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, gone.ofKind()).
		WatchesRawSource(&gone.inbox).
		Watches(&workv1alpha2.ResourceBinding{}, wake.whenBindingChanges()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, wake.whenBindingChanges()).
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

// movedOn lets pass what those may have waited for that hand objects to others.
var movedOn = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, okBefore := e.ObjectOld.(*kustomizev1.Kustomization)
	after, okAfter := e.ObjectNew.(*kustomizev1.Kustomization)
	return okBefore && okAfter && (dependencies.ReadinessOf(before) != dependencies.ReadinessOf(after) || before.Status.LastAttemptedRevision != after.Status.LastAttemptedRevision ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero())
}}

// wakes find the Kustomizations that a change of another object concerns.
type wakes struct {
	hub         client.Reader
	lastApplied *lastAppliedStates
}

// usersOf returns the Kustomizations that apply what a source fetches.
func (w wakes) usersOf(ctx context.Context, source client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(source)
	return w.find(ctx, func(ks *kustomizev1.Kustomization) bool { return inventory.SourceOf(ks) == key })
}

// dependents returns the Kustomizations that wait for another one. Where that is gone they look at everything
// anew: what they depend on is missing now.
func (w wakes) dependents(ctx context.Context, dependency client.Object) []reconcile.Request {
	all := func(*kustomizev1.Kustomization) bool { return true }
	key := client.ObjectKeyFromObject(dependency)
	found := w.find(ctx, all, dependencies.On(key))
	if apierrors.IsNotFound(w.hub.Get(ctx, key, &kustomizev1.Kustomization{}, client.UnsafeDisableDeepCopy)) {
		for _, dependent := range found {
			w.lastApplied.of(dependent.NamespacedName).again()
		}
	}
	return found
}

// siblings returns the Kustomizations that wait for others of the source.
func (w wakes) siblings(_ context.Context, changed client.Object) []reconcile.Request {
	ks, ok := changed.(*kustomizev1.Kustomization)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, key := range w.lastApplied.waitingForSiblings(inventory.SourceOf(ks)) {
		if key != client.ObjectKeyFromObject(ks) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// find returns the Kustomizations that match.
func (w wakes) find(ctx context.Context, match func(*kustomizev1.Kustomization) bool, among ...client.ListOption) []reconcile.Request {
	var list kustomizev1.KustomizationList
	if err := w.hub.List(ctx, &list, append(among, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find Kustomizations")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// whenBindingChanges wakes the Kustomizations that wait for the health of what
// a binding carries.
func (w wakes) whenBindingChanges() handler.EventHandler {
	wake := func(obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		id, ok := templateOf(obj)
		if !ok {
			return
		}
		for _, key := range w.lastApplied.waitingFor(id) {
			queue.AddAfter(reconcile.Request{NamespacedName: key}, debounceTime)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectNew, q)
		},
	}
}

// templateOf returns the identity of the template that a binding carries.
func templateOf(obj client.Object) (inventory.ID, bool) {
	binding, ok := obj.(workv1alpha2.Binding)
	if !ok {
		return inventory.ID{}, false
	}
	resource := binding.BindingSpec().Resource
	gv, err := schema.ParseGroupVersion(resource.APIVersion)
	return inventory.ID{Namespace: resource.Namespace, Name: resource.Name, GroupKind: gv.WithKind(resource.Kind).GroupKind()}, err == nil
}
