package watches

import (
	"context"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/approvals"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// debounceTime is the delay after a change, so that the many changes of a rollout cause few runs.
const debounceTime = 250 * time.Millisecond

// States is what the loop keeps of Kustomizations between runs.
type States interface {
	// WaitingFor returns the Kustomizations that wait for an object.
	WaitingFor(id inventory.ID) []client.ObjectKey
	// WaitingForSiblings returns the Kustomizations that wait for others of a source.
	WaitingForSiblings(source inventory.Source) []client.ObjectKey
	// RecreateAfter reports whether a deleted object is one that a Kustomization holds, and after which time the
	// Kustomization has to be reconciled. That time grows if the object is deleted again and again. If it is
	// applied again only much later, the returned time is short all the same, so that the run reports it.
	RecreateAfter(key client.ObjectKey, id inventory.ID) (after time.Duration, misses bool)
	// ForceFullRun makes the next run of a Kustomization a full one.
	ForceFullRun(key client.ObjectKey)
	// Doubt makes the next run of a Kustomization find out its health, even if it is ready.
	Doubt(key client.ObjectKey)
}

// MapFuncs find the Kustomizations that a change of another object concerns.
type MapFuncs struct {
	Hub    client.Reader
	States States
}

// UsersOf returns the Kustomizations that apply what a source fetches.
func (m MapFuncs) UsersOf(ctx context.Context, source client.Object) []reconcile.Request {
	changed := origins.Of(source)
	return m.Find(ctx, func(ks *kustomizev1.Kustomization) bool { return inventory.SourceOf(ks) == changed })
}

// Held returns the Kustomizations that apply what the source of a PullRequestReview fetches.
func (m MapFuncs) Held(ctx context.Context, review client.Object) []reconcile.Request {
	of := approvals.SourceOf(review)
	return m.Find(ctx, func(ks *kustomizev1.Kustomization) bool { return inventory.SourceOf(ks) == of })
}

// Dependents returns the Kustomizations that depend on another one. If that is gone, their next run is a full one,
// which reports that their dependency is missing.
func (m MapFuncs) Dependents(ctx context.Context, dependency client.Object) []reconcile.Request {
	all := func(*kustomizev1.Kustomization) bool { return true }
	key := client.ObjectKeyFromObject(dependency)
	found := m.Find(ctx, all, dependencies.On(key))
	if apierrors.IsNotFound(m.Hub.Get(ctx, key, &kustomizev1.Kustomization{}, client.UnsafeDisableDeepCopy)) {
		for _, dependent := range found {
			m.States.ForceFullRun(dependent.NamespacedName)
		}
	}
	return found
}

// Siblings returns the Kustomizations that wait for others of the source.
func (m MapFuncs) Siblings(_ context.Context, changed client.Object) []reconcile.Request {
	ks, ok := changed.(*kustomizev1.Kustomization)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, key := range m.States.WaitingForSiblings(inventory.SourceOf(ks)) {
		if key != client.ObjectKeyFromObject(ks) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// Find returns the Kustomizations that match.
func (m MapFuncs) Find(ctx context.Context, match func(*kustomizev1.Kustomization) bool, among ...client.ListOption) []reconcile.Request {
	var list kustomizev1.KustomizationList
	if err := m.Hub.List(ctx, &list, append(among, client.UnsafeDisableDeepCopy)...); err != nil {
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

// WhenBindingChanges returns a handler that enqueues the Kustomizations that wait for the
// health of a binding's template.
func (m MapFuncs) WhenBindingChanges() handler.EventHandler {
	mapper := func(obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if id, ok := templateOf(obj); ok {
			m.waiting(id, queue)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			mapper(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			mapper(e.ObjectNew, q)
		},
	}
}

// WhenKustomizationChanges wakes the Kustomizations that wait for another one, or are ready with it.
func (m MapFuncs) WhenKustomizationChanges() handler.EventHandler {
	kind := kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()
	mapper := func(obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		m.waiting(inventory.ID{Namespace: obj.GetNamespace(), Name: obj.GetName(), GroupKind: kind}, queue)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			mapper(e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			m.parent(ctx, e.ObjectOld, e.ObjectNew, q)
			mapper(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			mapper(e.Object, q)
		},
	}
}

// waiting enqueues the Kustomizations that wait for the health of an object.
func (m MapFuncs) waiting(id inventory.ID, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, key := range m.States.WaitingFor(id) {
		queue.AddAfter(reconcile.Request{NamespacedName: key}, debounceTime)
	}
}

// templateOf returns the identity of a binding's template.
func templateOf(obj client.Object) (inventory.ID, bool) {
	binding, ok := obj.(workv1alpha2.Binding)
	if !ok {
		return inventory.ID{}, false
	}
	of := bindings.TemplateOf(binding)
	return inventory.ID{Namespace: of.Namespace, Name: of.Name, GroupKind: of.GroupKind()}, true
}

// Deletions enqueues Kustomizations whose objects others delete, or that refer to a ConfigMap or Secret which changed,
// so that the loop need not wait for the next check for drift. It starts no watches of templates, but listens to those
// of other loops.
type Deletions struct {
	MapFuncs
	Scheme    *runtime.Scheme
	Suspended Suspended
	Inbox     loop.Inbox[reconcile.Request]
}

// Suspended records what others do to objects of suspended Kustomizations, and returns which Kustomization that is.
type Suspended interface {
	Changed(kind schema.GroupKind, before, after *unstructured.Unstructured) (owner client.ObjectKey, matched bool)
}

// Changed is for templatestore.Listener.
func (d *Deletions) Changed(key templatestore.Key, before, after *unstructured.Unstructured, first bool) {
	if first {
		return
	}
	if owner, matched := d.Suspended.Changed(key.GroupVersionKind.GroupKind(), before, after); matched {
		d.Inbox.AddAfter(reconcile.Request{NamespacedName: owner}, debounceTime)
	}
	if after == nil && before != nil {
		d.deleted(before, key.GroupVersionKind.GroupKind())
	}
}

// deleted enqueues the Kustomization that an object's labels name, if it holds the object.
func (d *Deletions) deleted(obj client.Object, kind schema.GroupKind) {
	owner, ok := inventory.OwnerOf(obj)
	id := inventory.ID{Namespace: obj.GetNamespace(), Name: obj.GetName(), GroupKind: kind}
	if !ok {
		return
	}
	if after, misses := d.States.RecreateAfter(owner, id); misses {
		d.Inbox.AddAfter(reconcile.Request{NamespacedName: owner}, max(after, debounceTime))
	}
}

// Referred enqueues a full run of the Kustomizations that refer to a ConfigMap or Secret which changed.
func (d *Deletions) Referred(ctx context.Context, kind string, key client.ObjectKey) {
	users := d.Find(ctx, func(ks *kustomizev1.Kustomization) bool {
		return ks.Namespace == key.Namespace && slices.Contains(referredBy(ks.Spec), kind+"/"+key.Name)
	})
	for _, user := range users {
		d.States.ForceFullRun(user.NamespacedName)
		d.Inbox.AddAfter(user, debounceTime)
	}
}

// referredBy lists the ConfigMaps and Secrets that a run reads: those of variables, that of keys, and that which leads to
// another cluster.
func referredBy(spec kustomizev1.KustomizationSpec) []string {
	var out []string
	if post := spec.PostBuild; post != nil {
		for _, ref := range post.SubstituteFrom {
			out = append(out, ref.Kind+"/"+ref.Name)
		}
	}
	if spec.Decryption != nil && spec.Decryption.SecretRef != nil {
		out = append(out, "Secret/"+spec.Decryption.SecretRef.Name)
	}
	if spec.KubeConfig != nil && spec.KubeConfig.SecretRef != nil {
		out = append(out, "Secret/"+spec.KubeConfig.SecretRef.Name)
	}
	return out
}

// Kinds returns the kinds that the manager's cache watches anyway, of what Kustomizations apply and others may delete.
func Kinds() []client.Object {
	return []client.Object{
		&kustomizev1.Kustomization{}, &policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{},
		&policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{},
	}
}

// OfKind returns a handler for the deletions of one of the Kinds.
func (d *Deletions) OfKind() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if gvk, err := apiutil.GVKForObject(e.Object, d.Scheme); err == nil {
			d.deleted(e.Object, gvk.GroupKind())
		}
	}}
}
