package dependency

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// A question that the interpreter fails to answer is asked again after pauses
// that grow from the first to the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Minute
)

// byUser is the index of bindings by those that need them, as Ref prints them.
const byUser = "requiredBy"

// index adds the index that the loops need to indexer.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		err := indexer.IndexField(ctx, kind, byUser, func(obj client.Object) []string {
			return words(dependency.Refs(obj.(workv1alpha2.Binding)))
		})
		if err != nil {
			return fmt.Errorf("index bindings by who needs them: %w", err)
		}
	}
	return nil
}

// Register adds the two loops to mgr.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.templates.Listen(templatestore.Listener{Changed: r.changed})
	r.templates.Want(grants{}, dependency.GrantKinds()...)
	users, err := controller.New("dependent", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.ByNamespace(r.opts.Workers),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPause, longestPause),
	})
	if err != nil {
		return fmt.Errorf("set up the loop of dependents: %w", err)
	}
	objects, err := controller.NewTyped("dependency", mgr, controller.TypedOptions[templatestore.Key]{
		Reconciler: attach{r}, MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.By(r.opts.Workers, templatestore.Key.Tenant),
	})
	if err != nil {
		return fmt.Errorf("set up the loop of dependencies: %w", err)
	}
	for _, s := range []source.Source{
		&r.users,
		source.Kind(mgr.GetCache(), client.Object(&workv1alpha2.ResourceBinding{}), r.userEvents()),
		source.Kind(mgr.GetCache(), client.Object(&workv1alpha2.ClusterResourceBinding{}), r.userEvents()),
		source.Kind(mgr.GetCache(), &workv1alpha1.Work{}, r.workEvents()),
		source.Kind(mgr.GetCache(), &policyv1alpha1.ClusterPropagationPolicy{}, crossNamespace{r}.policyEvents()),
	} {
		if err := users.Watch(s); err != nil {
			return fmt.Errorf("watch the bindings of dependents: %w", err)
		}
	}
	for _, s := range []source.TypedSource[templatestore.Key]{
		&r.objects,
		source.TypedKind(mgr.GetCache(), client.Object(&workv1alpha2.ResourceBinding{}), attach{r}.objectEvents()),
		source.TypedKind(mgr.GetCache(), client.Object(&workv1alpha2.ClusterResourceBinding{}), attach{r}.objectEvents()),
	} {
		if err := objects.Watch(s); err != nil {
			return fmt.Errorf("watch the bindings of dependencies: %w", err)
		}
	}
	return nil
}

func requestFor(ref dependency.Ref) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}}
}

// changed enqueues a changed template as a user, and the binding of an
// object that somebody may need.
func (r *Reconciler) changed(key templatestore.Key, _, _ *unstructured.Unstructured, first bool) {
	if isGrant(key.GroupVersionKind) {
		crossNamespace{r}.granted(key.Namespace)
	}
	b := bindings.KeyOf(key)
	if r.index.follows(dependency.Ref{Namespace: b.Namespace, Name: b.Name}) {
		r.users.Add(reconcile.Request{NamespacedName: b}, first)
	}
	if r.index.concerns(key) {
		r.objects.Add(key, first)
	}
}

// userEvents looks at bindings that may need something, or that say so.
func (r *Reconciler) userEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(q queue, b workv1alpha2.Binding) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			b := e.Object.(workv1alpha2.Binding)
			if involved(b) {
				add(q, b)
			}
			if dependency.Governed(b) {
				crossNamespace{r}.requeueRefused(q, b)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(workv1alpha2.Binding), e.ObjectNew.(workv1alpha2.Binding)
			if (involved(before) || involved(after)) && edited(before, after) {
				add(q, after)
			}
			if dependency.Governed(before) != dependency.Governed(after) {
				crossNamespace{r}.requeueRefused(q, after)
			}
			for _, ref := range dependency.Refs(before) {
				if !names(after, ref) {
					q.Add(requestFor(ref)) // its finalizer may be removed
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			b := e.Object.(workv1alpha2.Binding)
			add(q, b)
			crossNamespace{r}.requeueRefused(q, b)
			for _, ref := range dependency.Refs(b) {
				q.Add(requestFor(ref))
			}
		},
	}
}

// requeueRefused looks again at those that may not have the template of b: whether that is
// a loss depends on whether anything else carries it.
func (r crossNamespace) requeueRefused(q workqueue.TypedRateLimitingInterface[reconcile.Request], b workv1alpha2.Binding) {
	for _, ref := range r.index.refusedOf(bindings.TemplateOf(b)) {
		q.Add(requestFor(ref))
	}
}

// policyEvents looks again at what reaches beyond its namespace where an
// administrator says anything else about that.
func (r crossNamespace) policyEvents() handler.TypedEventHandler[*policyv1alpha1.ClusterPropagationPolicy, reconcile.Request] {
	type (
		policy = *policyv1alpha1.ClusterPropagationPolicy
		queue  = workqueue.TypedRateLimitingInterface[reconcile.Request]
	)
	return handler.TypedFuncs[policy, reconcile.Request]{
		CreateFunc: func(context.Context, event.TypedCreateEvent[policy], queue) { r.regrant() },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[policy], _ queue) {
			if e.ObjectOld.Generation != e.ObjectNew.Generation || !maps.Equal(e.ObjectOld.Annotations, e.ObjectNew.Annotations) {
				r.regrant()
			}
		},
		DeleteFunc: func(context.Context, event.TypedDeleteEvent[policy], queue) { r.regrant() },
	}
}

// workEvents looks at users of which a cluster has a Work that it is not to have,
// as soon as that is seen, and once it is gone. The Works of clusters where a user
// is to run change nothing.
func (r *Reconciler) workEvents() handler.TypedEventHandler[*workv1alpha1.Work, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, w *workv1alpha1.Work, q queue) {
		key, owned := bindings.OwnerOf(w)
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if !owned || !ok {
			return
		}
		b, found, err := bindings.Get(ctx, r.hub, key)
		if err != nil || found && r.opts.uses(b) && lingers(b, []string{cluster}) {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.TypedFuncs[*workv1alpha1.Work, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*workv1alpha1.Work], q queue) {
			enqueue(ctx, e.Object, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*workv1alpha1.Work], q queue) {
			enqueue(ctx, e.Object, q)
		},
	}
}

// involved reports whether b's template propagates what it needs, or b records that
// it did.
func involved(b workv1alpha2.Binding) bool {
	if b.BindingSpec().PropagateDeps || slices.Contains(b.GetFinalizers(), workv1alpha2.BindingDependenciesDistributorFinalizer) {
		return true
	}
	_, noted := b.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotationKey]
	_, fault := b.GetAnnotations()[dependency.FaultAnnotation]
	return noted || fault
}

// edited reports whether anything but the status differs.
func edited(before, after workv1alpha2.Binding) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// objectEvents looks at the objects whose binding says that others need it, or
// should say so.
func (r attach) objectEvents() handler.TypedEventHandler[client.Object, templatestore.Key] {
	type queue = workqueue.TypedRateLimitingInterface[templatestore.Key]
	concerned := func(b workv1alpha2.Binding) bool {
		return dependency.Tied(b) || r.index.concerns(bindings.TemplateOf(b))
	}
	return handler.TypedFuncs[client.Object, templatestore.Key]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if b := e.Object.(workv1alpha2.Binding); !r.written.Observed(b) && concerned(b) {
				q.Add(bindings.TemplateOf(b))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(workv1alpha2.Binding), e.ObjectNew.(workv1alpha2.Binding)
			if own := r.written.Observed(after); !own && edited(before, after) && (concerned(before) || concerned(after)) {
				q.Add(bindings.TemplateOf(after))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			b := e.Object.(workv1alpha2.Binding)
			r.written.Gone(b)
			if concerned(b) {
				q.Add(bindings.TemplateOf(b))
			}
		},
	}
}
