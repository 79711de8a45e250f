package binding

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/binding/inuse"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// Register adds the loop to mgr. The indexes of bindings must have been added before.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	r.templates.Listen(templatestore.Listener{Changed: r.templateChanged, KindChanged: func(ctx context.Context, gvk schema.GroupVersionKind, state templatestore.State) {
		if state != templatestore.Synced {
			return
		}
		byKind := client.MatchingFields{bindings.ByTemplateKind: gvk.String()}
		err := bindings.Each(ctx, r.works.hub, func(b workv1alpha2.Binding) { r.inbox.Add(requestFor(b), true) }, byKind)
		if err != nil {
			mgr.GetLogger().Error(err, "look again at the bindings of a kind", "kind", gvk.String())
		}
	}})
	touches := bindingFinder{works: r.works, templates: r.templates.Get}
	r.switches.Listen(revisiongate.Listener{Override: touches.overridden(ctx, r.gate.again), Ending: r.gate.switchEnding(ctx, touches.touched), Ended: r.gate.switchEnded})
	if r.opts.Switches == nil {
		if err := r.switches.Register(ctx, mgr.GetCache(), false); err != nil {
			return err
		}
	}
	c, err := controller.New("binding", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.ByNamespace(r.opts.Workers)})
	if err != nil {
		return fmt.Errorf("set up the binding loop: %w", err)
	}
	sources := []source.Source{
		&r.inbox,
		source.Kind(mgr.GetCache(), client.Object(&workv1alpha2.ResourceBinding{}), r.bindingEvents()),
		source.Kind(mgr.GetCache(), client.Object(&workv1alpha2.ClusterResourceBinding{}), r.bindingEvents()),
		source.Kind(mgr.GetCache(), &workv1alpha1.Work{}, r.workEvents()),
		revisiongate.Synced[ctrl.Request]{Of: r.switches},
		source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, r.clusterEvents()),
		source.Kind(mgr.GetCache(), client.Object(&policyv1alpha1.FederatedResourceQuota{}), r.quotaEvents()),
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch what works are made from: %w", err)
		}
	}
	return nil
}

// Reinterpret enqueues the bindings of templates of kinds whose interpreter rules have
// changed.
func (r *Reconciler) Reinterpret(ctx context.Context, affects func(schema.GroupVersionKind) bool) {
	err := bindings.Each(ctx, r.works.hub, func(b workv1alpha2.Binding) {
		if affects(bindings.TemplateOf(b).GroupVersionKind) {
			r.inbox.Add(requestFor(b), true)
		}
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "look again at the bindings of some kinds")
	}
}

// templateChanged enqueues the binding of a template whose content changed. If
// nothing has to be decided about the change, the Works can be written. Else
// they wait for the template loop to write the binding, whose event would enqueue it, too; but
// if that event came before this one, nothing else would.
func (r *Reconciler) templateChanged(key templatestore.Key, before, after *unstructured.Unstructured, _ bool) {
	if before != nil && after != nil {
		r.inbox.Add(ctrl.Request{NamespacedName: bindings.KeyOf(key)}, false)
	}
}

func requestFor(b metav1.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: b.GetNamespace(), Name: b.GetName()}}
}

// needs is the owner under which the kind of a binding's template is watched.
type needs client.ObjectKey

// bindingEvents makes the store watch the kinds of bindings' templates, and enqueues
// bindings with a change on which Works depend.
func (r *Reconciler) bindingEvents() handler.EventHandler {
	want := func(b workv1alpha2.Binding) {
		r.templates.Want(needs(client.ObjectKeyFromObject(b)), bindings.TemplateOf(b).GroupVersionKind)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			want(e.Object.(workv1alpha2.Binding))
			q.Add(requestFor(e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(workv1alpha2.Binding), e.ObjectNew.(workv1alpha2.Binding)
			inuse.EachLetGo(ctx, r.works.hub, before, after, func(b workv1alpha2.Binding) { q.Add(requestFor(b)) })
			if bindings.TemplateOf(before).GroupVersionKind != bindings.TemplateOf(after).GroupVersionKind {
				want(after)
			}
			if decisive(before, after) {
				q.Add(requestFor(after))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.templates.Want(needs(client.ObjectKeyFromObject(e.Object)))
			inuse.EachLetGo(ctx, r.works.hub, e.Object.(workv1alpha2.Binding), nil, func(b workv1alpha2.Binding) { q.Add(requestFor(b)) })
			q.Add(requestFor(e.Object))
		},
	}
}

// decisive reports whether Works depend on what changed of a binding.
func decisive(before, after workv1alpha2.Binding) bool {
	id := bindings.IDLabel(after)
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		before.GetLabels()[id] != after.GetLabels()[id] ||
		before.GetAnnotations()[propagation.DigestAnnotation] != after.GetAnnotations()[propagation.DigestAnnotation] ||
		!slices.Equal(plan.PrunedFrom(before), plan.PrunedFrom(after))
}

// workEvents enqueues the binding of a Work that somebody else created, changed
// or deleted, and of one whose deletion is blocked. If the binding is leaving a cluster, it also does so
// for a Work that has become ready, or that serves nobody any more.
func (r *Reconciler) workEvents() handler.TypedEventHandler[*workv1alpha1.Work, ctrl.Request] {
	add := func(w *workv1alpha1.Work, q queue) {
		if key, ok := bindings.OwnerOf(w); ok {
			q.Add(ctrl.Request{NamespacedName: key})
		}
	}
	return handler.TypedFuncs[*workv1alpha1.Work, ctrl.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*workv1alpha1.Work], q queue) {
			if !r.works.written.Observed(e.Object) {
				add(e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*workv1alpha1.Work], q queue) {
			changed := r.freshness.Observe(e.ObjectOld, e.ObjectNew)
			switch own := r.works.written.Observed(e.ObjectNew); {
			case !own && edited(e.ObjectOld, e.ObjectNew):
				add(e.ObjectOld, q)
				add(e.ObjectNew, q)
			case undelete.Blocked(e.ObjectNew) && !undelete.Blocked(e.ObjectOld), undelete.Released(e.ObjectNew) && !undelete.Released(e.ObjectOld):
				add(e.ObjectNew, q)
			case decides(e.ObjectOld, e.ObjectNew, changed) && r.moving(ctx, e.ObjectNew):
				add(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*workv1alpha1.Work], q queue) {
			r.works.written.Gone(e.Object)
			add(e.Object, q)
		},
	}
}

// decides reports whether a cluster may be left because of the change of a Work: its copy is ready, or serves
// nobody, and that is new, or a binding waits for the status.
func decides(before, after *workv1alpha1.Work, awaited bool) bool {
	ends := func(whole bool) bool {
		return !rollup.Serves(after, true, whole) && (awaited || rollup.Serves(before, true, whole))
	}
	return rollup.ReadyAsSent(after) && (awaited || !rollup.ReadyAsSent(before)) || ends(true) || ends(false)
}

// edited reports whether anything but the status differs.
func edited(before, after *workv1alpha1.Work) bool {
	return before.Generation != after.Generation ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		!slices.Equal(before.Finalizers, after.Finalizers)
}
