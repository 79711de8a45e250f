package commitstatus

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// Register adds the loop to a manager.
func (r *Sources) Register(mgr ctrl.Manager) error {
	wake := sourceWakes{hub: r.hub, own: wakes{statuses: r.statuses}, crossNamespace: r.opts.AllowCrossNamespace}
	byGeneration := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("commitstatus-source").
		Watches(&sourcev1.GitRepository{}, soon(wake.ofSource), builder.WithPredicates(fetched)).
		Watches(&sourcev1.OCIRepository{}, soon(wake.ofSource), builder.WithPredicates(fetched)).
		Watches(&kustomizev1.Kustomization{}, soon(wake.ofKustomization)).
		Watches(&gitopsv1alpha1.CommitStatus{}, soon(wake.ofStatus), builder.WithPredicates(wake.own.statusEvents())).
		Watches(&notificationv1beta3.Alert{}, soon(wake.inNamespace), byGeneration).
		Watches(&notificationv1beta3.Provider{}, soon(wake.inNamespace), byGeneration).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.ByNamespace(r.opts.Workers)}).
		Complete(r)
}

// fetched lets a source pass that is at another revision, or refuses another one, comes or goes.
var fetched = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, okBefore := e.ObjectOld.(origins.Object)
	after, okAfter := e.ObjectNew.(origins.Object)
	if !okBefore || !okAfter {
		return false
	}
	if origins.Revision(before) != origins.Revision(after) || before.GetGeneration() != after.GetGeneration() {
		return true
	}
	was, okBefore := before.(*sourcev1.GitRepository)
	is, okAfter := after.(*sourcev1.GitRepository)
	return okBefore && okAfter && (provenance.Refused(was) != provenance.Refused(is) || lineage.RefusedBy(was) != lineage.RefusedBy(is))
}}

// soon lets what changes at the same time come together.
func soon(of func(context.Context, client.Object) []client.ObjectKey) handler.EventHandler {
	add := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], objs ...client.Object) {
		for _, obj := range objs {
			for _, key := range of(ctx, obj) {
				q.AddAfter(reconcile.Request{NamespacedName: key}, coalesce)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.Object)
		},
	}
}

// sourceWakes finds whose sum a change is about.
type sourceWakes struct {
	hub            client.Reader
	own            wakes
	crossNamespace bool
}

// ofSource are all namespaces that apply a source, and its own.
func (w sourceWakes) ofSource(ctx context.Context, obj client.Object) []client.ObjectKey {
	source := origins.Of(obj)
	keys := []client.ObjectKey{keyOfSource(source.Namespace, source)}
	if !w.crossNamespace {
		return keys
	}
	for _, key := range w.applied(ctx, "") {
		if key.Namespace != source.Namespace && sourceOfKey(key) == source {
			keys = append(keys, key)
		}
	}
	return keys
}

func (w sourceWakes) ofKustomization(_ context.Context, obj client.Object) []client.ObjectKey {
	if ks, ok := obj.(*kustomizev1.Kustomization); ok {
		if source, ok := followedBy(ks); ok {
			return []client.ObjectKey{keyOfSource(ks.Namespace, source)}
		}
	}
	return nil
}

// ofStatus is the source of the Kustomization that a CommitStatus is about, or the one that it is about itself.
func (w sourceWakes) ofStatus(ctx context.Context, obj client.Object) []client.ObjectKey {
	cs, ok := obj.(*gitopsv1alpha1.CommitStatus)
	if !ok {
		return nil
	}
	if cs.Spec.SourceRef != nil {
		return []client.ObjectKey{keyOf(cs)}
	}
	ks := &kustomizev1.Kustomization{}
	if err := w.hub.Get(ctx, keyOf(cs), ks); err != nil {
		return nil // its own end wakes its source
	}
	return w.ofKustomization(ctx, ks)
}

// inNamespace are all sources that the namespace of an object applies.
func (w sourceWakes) inNamespace(ctx context.Context, obj client.Object) []client.ObjectKey {
	return w.applied(ctx, obj.GetNamespace())
}

// applied are the sources that are applied in a namespace; the empty one stands for all.
func (w sourceWakes) applied(ctx context.Context, namespace string) []client.ObjectKey {
	var list kustomizev1.KustomizationList
	if err := w.hub.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "find Kustomizations")
		return nil
	}
	seen := map[client.ObjectKey]bool{}
	var keys []client.ObjectKey
	for i := range list.Items {
		for _, key := range w.ofKustomization(ctx, &list.Items[i]) {
			if !seen[key] {
				seen[key], keys = true, append(keys, key)
			}
		}
	}
	return keys
}
