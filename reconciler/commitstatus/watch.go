package commitstatus

import (
	"context"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// coalesce lets the changes of a rollout come together before it is summed up again.
const coalesce = 250 * time.Millisecond

// Register adds the loop to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	wakes := wakes{hub: r.hub, statuses: r.statuses, followed: r.followed}
	byGeneration := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	byOwner := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	ofRule := handler.EnqueueRequestsFromMapFunc(wakes.ofRule)
	inNamespace := handler.EnqueueRequestsFromMapFunc(wakes.inNamespace)
	return ctrl.NewControllerManagedBy(mgr).
		Named("commitstatus").
		For(&kustomizev1.Kustomization{}).
		Owns(&gitopsv1alpha1.CommitStatus{}, builder.WithPredicates(wakes.statusEvents())).
		Watches(&notificationv1beta3.Alert{}, inNamespace, byGeneration).
		Watches(&notificationv1beta3.Provider{}, inNamespace, byGeneration).
		Watches(&workv1alpha2.ResourceBinding{}, wakes.whenBindingChanges()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, wakes.whenBindingChanges()).
		Watches(&workv1alpha1.Work{}, wakes.whenWorkChanges()).
		Watches(&policyv1alpha1.PropagationPolicy{}, ofRule, byOwner).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, ofRule, byOwner).
		Watches(&policyv1alpha1.OverridePolicy{}, ofRule, byOwner).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, ofRule, byOwner).
		Watches(&kustomizev1.Kustomization{}, wakes.whenAnotherHoldsIt()).
		Watches(&sourcev1.OCIRepository{}, handler.EnqueueRequestsFromMapFunc(wakes.ofArtifact), builder.WithPredicates(fetched)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(wakes.allFollowed), builder.WithPredicates(fleetChanges)).
		Watches(&clusterv1alpha1.Cluster{}, wakes.whenClaimsStay()).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.ByNamespace(r.opts.Workers)}).
		Complete(r)
}

// wakes brings Kustomizations in whose commit statuses a change may be about.
type wakes struct {
	hub      client.Reader
	statuses statuses
	followed *followed
}

// statusEvents passes on what others did to CommitStatuses. It ends the wait for
// own writes: what the cache has shown is not missed when it goes.
func (w wakes) statusEvents() predicate.Predicate {
	own := func(obj client.Object) bool {
		cs, ok := obj.(*gitopsv1alpha1.CommitStatus)
		return ok && w.statuses.written.Observed(cs)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !own(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !own(e.ObjectNew) && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			w.statuses.written.Gone(e.Object)
			return true
		},
	}
}

// inNamespace returns the Kustomizations of an Alert's or Provider's namespace.
func (w wakes) inNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	var list kustomizev1.KustomizationList
	if err := w.hub.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "find Kustomizations")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// ofArtifact returns the Kustomizations that apply what an artifact holds: which commit that was packed from the source may be
// known to say only after they have tried it.
func (w wakes) ofArtifact(ctx context.Context, obj client.Object) []reconcile.Request {
	var list kustomizev1.KustomizationList
	if err := w.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "find Kustomizations")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if inventory.SourceOf(&list.Items[i]) == origins.Of(obj) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// fleetChanges lets pass a cluster that joins, leaves, falls silent, or is heard of again: commits may
// name it.
var fleetChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*clusterv1alpha1.Cluster)
		after, okAfter := e.ObjectNew.(*clusterv1alpha1.Cluster)
		if !okBefore || !okAfter {
			return false
		}
		was, _ := rollup.SilenceOf(before)
		is, _ := rollup.SilenceOf(after)
		return was != is
	},
}

// allFollowed returns the Kustomizations that have commit statuses: what a cluster runs of
// them is known by its bindings, which are many.
func (w wakes) allFollowed(context.Context, client.Object) []reconcile.Request {
	return w.followed.all()
}

// ofRule returns the Kustomizations that own a policy or an override: it may ask for clusters that are not there, and another
// Kustomization may have overwritten it.
func (w wakes) ofRule(_ context.Context, obj client.Object) []reconcile.Request {
	kind := ""
	switch obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		kind = policyv1alpha1.ResourceKindPropagationPolicy
	case *policyv1alpha1.ClusterPropagationPolicy:
		kind = policyv1alpha1.ResourceKindClusterPropagationPolicy
	case *policyv1alpha1.OverridePolicy:
		kind = policyv1alpha1.ResourceKindOverridePolicy
	case *policyv1alpha1.ClusterOverridePolicy:
		kind = policyv1alpha1.ResourceKindClusterOverridePolicy
	default:
		return nil
	}
	var requests []reconcile.Request
	for _, key := range w.followed.owners(inventory.ID{Namespace: obj.GetNamespace(), Name: obj.GetName(), GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: kind}}) {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// whenAnotherHoldsIt wakes the Kustomizations of objects that another one comes to hold, too, or gives up, goes on to apply or is
// suspended with.
func (w wakes) whenAnotherHoldsIt() handler.EventHandler {
	wake := func(of client.Object, turned []inventory.Entry, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, e := range turned {
			for _, key := range w.followed.owners(e.ID) {
				if key != client.ObjectKeyFromObject(of) {
					queue.AddAfter(reconcile.Request{NamespacedName: key}, coalesce)
				}
			}
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectNew, turned(e.ObjectOld, e.ObjectNew), queue)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, holding(e.Object), queue)
		},
	}
}

// turned are the objects that one of two versions of a Kustomization applies, and the other one does not.
func turned(before, after client.Object) []inventory.Entry {
	diff := inventory.Compare(holding(before), holding(after))
	return slices.Concat(diff.Added, diff.Removed)
}

// holding are the objects that a Kustomization applies at each interval: none of one that is suspended, or being deleted.
func holding(obj client.Object) []inventory.Entry {
	ks, ok := obj.(*kustomizev1.Kustomization)
	if !ok || ks.Spec.Suspend || ks.DeletionTimestamp != nil {
		return nil
	}
	entries, err := inventory.Here(ks)
	if err != nil {
		return nil // whoever applies it reports that
	}
	return entries
}

// whenClaimsStay wakes the Kustomizations of claims that stay in a cluster, or do so no more.
func (w wakes) whenClaimsStay() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		before, _ := e.ObjectOld.(*clusterv1alpha1.Cluster)
		after, _ := e.ObjectNew.(*clusterv1alpha1.Cluster)
		for _, claim := range volumes.Turned(before, after) {
			for _, key := range w.followed.owners(inventory.ID{Namespace: claim.Namespace, Name: claim.Name, GroupKind: volumes.Kind()}) {
				queue.Add(reconcile.Request{NamespacedName: key}) // its Work's end has brought it in: this is not to be reported later
			}
		}
	}}
}

// whenWorkChanges wakes the Kustomizations of what a cluster does not hold any more, or cannot let go of, of what it
// holds the latest of now, and of what its Pods say: that changes nothing for the binding. Of a Namespace, which has no binding,
// all counts.
func (w wakes) whenWorkChanges() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			was, before := e.ObjectOld.(*workv1alpha1.Work)
			is, now := e.ObjectNew.(*workv1alpha1.Work)
			if !before || !now {
				return
			}
			key, ours := bindings.OwnerOf(is)
			if !ours || is.DeletionTimestamp != nil {
				if statusChanged(was, is) {
					w.wakeOwners(is, queue)
				}
				return
			}
			if caughtUp := rollup.Behind(was) && !rollup.Behind(is); !caughtUp && rollup.PodsOf(was) == rollup.PodsOf(is) {
				return
			}
			b, found, err := bindings.Get(ctx, w.hub, key)
			if err != nil {
				log.FromContext(ctx).Error(err, "find the binding of a work", "binding", key)
			}
			if found {
				w.wake(b, queue)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if work, ok := e.Object.(*workv1alpha1.Work); ok {
				w.wakeOwners(work, queue)
			}
		},
	}
}

// statusChanged reports whether what a Work says of itself has changed.
func statusChanged(was, is *workv1alpha1.Work) bool {
	before, wasMessage := rollup.OfWork(was)
	now, says := rollup.OfWork(is)
	return before != now || wasMessage != says
}

// wakeOwners enqueues the Kustomizations that own what a Work holds, or did.
func (w wakes) wakeOwners(work *workv1alpha1.Work, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, m := range work.Spec.Workload.Manifests {
		id, _, _ := inventory.OfManifest(m.Raw) // nobody owns what is none
		for _, key := range w.followed.owners(id) {
			queue.AddAfter(reconcile.Request{NamespacedName: key}, coalesce)
		}
	}
}

// wake brings in the Kustomizations that own what a binding carries.
func (w wakes) wake(obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	binding, ok := obj.(workv1alpha2.Binding)
	if !ok {
		return
	}
	resource := binding.BindingSpec().Resource
	kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind).GroupKind()
	for _, key := range w.followed.owners(inventory.ID{Namespace: resource.Namespace, Name: resource.Name, GroupKind: kind}) {
		queue.AddAfter(reconcile.Request{NamespacedName: key}, coalesce)
	}
}

// whenBindingChanges wakes the Kustomizations that own what a binding carries.
func (w wakes) whenBindingChanges() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			w.wake(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			w.wake(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			w.wake(e.Object, q)
		},
	}
}
