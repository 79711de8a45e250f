package template

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Register adds the loop, and the one that reconciles policies, to mgr. The
// indexes of bindings must have been added before.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := r.policies.catalog.register(ctx, mgr.GetCache()); err != nil {
		return err
	}
	r.templates.Listen(templatestore.Listener{Changed: r.changed, KindChanged: func(ctx context.Context, gvk schema.GroupVersionKind, state templatestore.State) {
		if err := r.kindChanged(ctx, gvk, state); err != nil {
			mgr.GetLogger().Error(err, "look again at what names a kind", "kind", gvk.String())
		}
	}})
	if err := r.registerTemplates(mgr); err != nil {
		return err
	}
	if err := r.policies.report.countBindings(ctx, mgr.GetCache()); err != nil {
		return err
	}
	return r.policies.register(mgr)
}

func (r *Reconciler) registerTemplates(mgr ctrl.Manager) error {
	c, err := controller.NewTyped("template", mgr, controller.TypedOptions[templatestore.Key]{
		Reconciler:              r,
		MaxConcurrentReconciles: r.opts.Workers,
		NewQueue:                fairqueue.By(r.opts.Workers, templatestore.Key.Tenant),
	})
	if err != nil {
		return fmt.Errorf("set up the template loop: %w", err)
	}
	if err := c.Watch(&r.inbox); err != nil {
		return fmt.Errorf("watch templates: %w", err)
	}
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := c.Watch(source.TypedKind(mgr.GetCache(), kind, r.bindingEvents())); err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
	}
	quotas := source.TypedKind(mgr.GetCache(), &policyv1alpha1.FederatedResourceQuota{}, handler.TypedEnqueueRequestsFromMapFunc(r.quotaEdited),
		quotaEdits())
	if err := c.Watch(quotas); err != nil {
		return fmt.Errorf("watch quotas: %w", err)
	}
	return nil
}

// quotaEdits passes edits and deletions of quotas. A new quota can only refuse
// more.
func quotaEdits() predicate.TypedPredicate[*policyv1alpha1.FederatedResourceQuota] {
	edited := predicate.TypedGenerationChangedPredicate[*policyv1alpha1.FederatedResourceQuota]{}
	return predicate.TypedFuncs[*policyv1alpha1.FederatedResourceQuota]{
		CreateFunc: func(event.TypedCreateEvent[*policyv1alpha1.FederatedResourceQuota]) bool { return false },
		UpdateFunc: edited.Update,
	}
}

// changed receives the events of templates.
func (r *Reconciler) changed(key templatestore.Key, before, after *unstructured.Unstructured, first bool) {
	r.policies.report.statistics.Template(key, after, first)
	r.inbox.Add(key, first)
	if before == nil {
		return
	}
	ref, was := propagation.Claimed(before)
	if !was {
		return
	}
	if after != nil {
		if now, _ := propagation.Claimed(after); now == ref {
			return
		}
	}
	r.policies.requests.Add(requestFor(ref), false)
}

// kindChanged enqueues the policies that select a kind, and, once the
// kind is completely listed, the templates of its bindings, some of which may have been deleted unseen.
func (r *Reconciler) kindChanged(ctx context.Context, gvk schema.GroupVersionKind, state templatestore.State) error {
	if state == templatestore.Unwanted || state == templatestore.Unserved {
		r.policies.report.statistics.Forget(gvk)
	}
	err := r.policies.catalog.selecting(ctx, gvk, func(p policyv1alpha1.Policy) {
		r.policies.requests.Add(requestFor(propagation.PolicyRef{Namespace: p.GetNamespace(), Name: p.GetName()}), true)
	})
	if err != nil || state != templatestore.Synced {
		return err
	}
	return bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		r.inbox.Add(bindings.TemplateOf(b), true)
	}, client.MatchingFields{bindings.ByTemplateKind: gvk.String()})
}

// Reinterpret enqueues the templates of kinds whose interpreter rules
// have changed.
func (r *Reconciler) Reinterpret(ctx context.Context, affects func(schema.GroupVersionKind) bool) {
	for _, gvk := range r.templates.Kinds() {
		if !affects(gvk) {
			continue
		}
		err := r.templates.List(ctx, gvk, "", func(obj *unstructured.Unstructured) { r.inbox.Add(templatestore.KeyOf(obj), true) })
		if err != nil {
			log.FromContext(ctx).Error(err, "look again at the templates of a kind", "kind", gvk.String())
		}
	}
}

func requestFor(ref propagation.PolicyRef) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}}
}

// boundTo is the owner under which the kind of a binding's template is watched.
type boundTo client.ObjectKey

// bindingEvents makes the store watch the kinds of bindings, and sends templates
// whose binding somebody else changed to the loop.
func (r *Reconciler) bindingEvents() handler.TypedEventHandler[client.Object, templatestore.Key] {
	type queue = workqueue.TypedRateLimitingInterface[templatestore.Key]
	return handler.TypedFuncs[client.Object, templatestore.Key]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			b := e.Object.(workv1alpha2.Binding)
			template := bindings.TemplateOf(b)
			r.templates.Want(boundTo(client.ObjectKeyFromObject(b)), template.GroupVersionKind)
			if !r.written.Observed(b) {
				q.Add(template)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, b := e.ObjectOld.(workv1alpha2.Binding), e.ObjectNew.(workv1alpha2.Binding)
			template := bindings.TemplateOf(b)
			if template.GroupVersionKind != bindings.TemplateOf(before).GroupVersionKind {
				r.templates.Want(boundTo(client.ObjectKeyFromObject(b)), template.GroupVersionKind)
			}
			r.notifyOwner(before, b)
			if own := r.written.Observed(b); !own && edited(before, b) {
				q.Add(template)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			b := e.Object.(workv1alpha2.Binding)
			r.templates.Want(boundTo(client.ObjectKeyFromObject(b)))
			r.written.Gone(b)
			r.notifyOwner(b, nil)
			for _, key := range namesakes(bindings.TemplateOf(b), r.templates.Kinds()) {
				q.Add(key)
			}
		},
	}
}

// notifyOwner enqueues the policy whose claim a binding lost, if it lost one.
func (r *Reconciler) notifyOwner(before, after workv1alpha2.Binding) {
	ref, was := propagation.Claimed(before)
	if !was {
		return
	}
	if after != nil {
		if now, _ := propagation.Claimed(after); now == ref {
			return
		}
	}
	r.policies.requests.Add(requestFor(ref), false)
}

// edited reports whether anything but the status differs.
func edited(before, after workv1alpha2.Binding) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// namesakes returns key and the templates of other groups that would have the
// same binding.
func namesakes(key templatestore.Key, kinds []schema.GroupVersionKind) []templatestore.Key {
	out := []templatestore.Key{key}
	for _, gvk := range kinds {
		if gvk.Group != key.Group && strings.EqualFold(gvk.Kind, key.Kind) {
			out = append(out, templatestore.Key{GroupVersionKind: gvk, Namespace: key.Namespace, Name: key.Name})
		}
	}
	return out
}

// policyWorkers is how many policies are reconciled concurrently; one namespace gets
// at most one less.
const policyWorkers = 3

func (p *policies) register(mgr ctrl.Manager) error {
	c, err := controller.New("policy", mgr, controller.Options{Reconciler: p, MaxConcurrentReconciles: policyWorkers, NewQueue: fairqueue.ByNamespace(policyWorkers)})
	if err != nil {
		return fmt.Errorf("set up the policy loop: %w", err)
	}
	if err := c.Watch(&p.requests); err != nil {
		return fmt.Errorf("watch what policies select: %w", err)
	}
	for _, kind := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}} {
		if err := c.Watch(source.Kind(mgr.GetCache(), kind, p.policyEvents(), policyEdits())); err != nil {
			return fmt.Errorf("watch policies: %w", err)
		}
	}
	for _, kind := range []client.Object{&policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{}} {
		if err := c.Watch(source.Kind(mgr.GetCache(), kind, handler.EnqueueRequestsFromMapFunc(p.waitingFor), existence())); err != nil {
			return fmt.Errorf("watch overrides: %w", err)
		}
	}
	var cluster client.Object = &clusterv1alpha1.Cluster{}
	if err := c.Watch(source.Kind(mgr.GetCache(), cluster, handler.EnqueueRequestsFromMapFunc(p.namedBy(byCluster)), existence())); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	if p.opts.NoPriority {
		return nil
	}
	var class client.Object = &schedulingv1.PriorityClass{}
	if err := c.Watch(source.Kind(mgr.GetCache(), class, handler.EnqueueRequestsFromMapFunc(p.namedBy(byClass)))); err != nil {
		return fmt.Errorf("watch priority classes: %w", err)
	}
	return nil
}

// namedBy finds the policies that name an object, by the index of its kind.
func (p *policies) namedBy(index string) handler.MapFunc {
	return func(ctx context.Context, named client.Object) []reconcile.Request {
		var out []reconcile.Request
		err := p.catalog.naming(ctx, index, named.GetName(), func(policy policyv1alpha1.Policy) {
			out = append(out, requestFor(propagation.PolicyRef{Namespace: policy.GetNamespace(), Name: policy.GetName()}))
		})
		if err != nil {
			log.FromContext(ctx).Error(err, "find the policies that name an object", "name", named.GetName())
		}
		return out
	}
}

// policyEvents enqueues the policy of each event, and forgets what was written
// to one that is gone.
func (p *policies) policyEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if old := e.ObjectOld.(policyv1alpha1.Policy); propagation.RefOf(old) != propagation.RefOf(e.ObjectNew.(policyv1alpha1.Policy)) {
				p.abandoned(ctx, old)
			}
			q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			p.abandoned(ctx, e.Object.(policyv1alpha1.Policy))
			p.written.Gone(e.Object)
			q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
	}
}

// policyEdits passes all changes of policies but those of their status.
func policyEdits() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
		},
	})
}

// existence passes creations and deletions.
func existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// waitingFor returns the policies that depend on an override.
func (p *policies) waitingFor(ctx context.Context, override client.Object) []reconcile.Request {
	var out []reconcile.Request
	err := p.catalog.depending(ctx, client.ObjectKeyFromObject(override), func(policy policyv1alpha1.Policy) {
		out = append(out, requestFor(propagation.PolicyRef{Namespace: policy.GetNamespace(), Name: policy.GetName()}))
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "find the policies that depend on an override")
	}
	return out
}
