package unifiedauth

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/policies/access"
)

// register adds the loop to mgr.
func (r *rights) register(ctx context.Context, mgr ctrl.Manager) error {
	if err := r.indexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("unifiedauth-rights").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: fairqueue.New[reconcile.Request]}).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(applyAsChanges())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace), builder.WithPredicates(comesOrGoes())).
		Watches(&rbacv1.Role{}, handler.EnqueueRequestsFromMapFunc(inNamespace), builder.WithPredicates(ruleChanges())).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(inNamespace), builder.WithPredicates(subjectChanges())).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(everywhere), builder.WithPredicates(ruleChanges())).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(everywhere), builder.WithPredicates(subjectChanges())).
		Watches(&workv1alpha1.Work{}, r.workHandler()).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the loop of rights in members: %w", err)
	}
	return nil
}

// request asks for a look at a source; with the name of a cluster, for that one alone.
func request(cluster string, source access.Source) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: cluster, Name: string(source)}}
}

// inNamespace names what a Role or RoleBinding is part of, and the ClusterRole that it is
// to: it may be the first, or the last.
func inNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	out := []reconcile.Request{request("", access.In(obj.GetNamespace()))}
	for _, role := range boundRole(obj) {
		out = append(out, request("", access.OfClusterRole(role)))
	}
	return out
}

// everywhere names a ClusterRole, or a ClusterRoleBinding and the role that it is to.
func everywhere(_ context.Context, obj client.Object) []reconcile.Request {
	if _, ok := obj.(*rbacv1.ClusterRole); ok {
		return []reconcile.Request{request("", access.OfClusterRole(obj.GetName()))}
	}
	out := []reconcile.Request{request("", access.OfClusterBinding(obj.GetName()))}
	for _, role := range boundRole(obj) {
		out = append(out, request("", access.OfClusterRole(role)))
	}
	return out
}

// ofNamespace names the namespace itself, or, where it is a cluster's execution
// namespace, all that the cluster is to have.
func (r *rights) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(namespace.GetName()); ok {
		return r.all(ctx, cluster)
	}
	if r.skip.SkipsNamespace(namespace.GetName()) {
		return nil
	}
	return []reconcile.Request{request("", access.In(namespace.GetName()))}
}

func (r *rights) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.all(ctx, cluster.GetName())
}

// all names every source that a cluster has rights from, or is to have.
func (r *rights) all(ctx context.Context, cluster string) []reconcile.Request {
	sources := map[access.Source]bool{}
	for _, namespace := range r.reach.namespaces(cluster) {
		if namespace != "" {
			sources[access.In(namespace)] = true
		}
	}
	var works workv1alpha1.WorkList
	if err := r.hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)), client.HasLabels{access.RightsLabel}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list works with rights")
	}
	for i := range works.Items {
		source, _ := access.Copied(&works.Items[i])
		sources[source] = true
	}
	var out []reconcile.Request
	for source := range sources {
		out = append(out, request(cluster, source))
	}
	return append(out, r.ofAllOf(ctx, cluster)...)
}

// ofAllOf names what gives rights in all of a cluster.
func (r *rights) ofAllOf(ctx context.Context, cluster string) []reconcile.Request {
	var roles rbacv1.ClusterRoleList
	var bindings rbacv1.ClusterRoleBindingList
	for _, list := range []client.ObjectList{&roles, &bindings} {
		if err := r.hub.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "list what holds everywhere")
		}
	}
	var out []reconcile.Request
	for i := range roles.Items {
		out = append(out, request(cluster, access.OfClusterRole(roles.Items[i].Name)))
	}
	for i := range bindings.Items {
		out = append(out, request(cluster, access.OfClusterBinding(bindings.Items[i].Name)))
	}
	return out
}

// workHandler counts where authors' Works go, and has rights looked at that are new
// there, or needed no more; and those that somebody edited, or that are gone. It ends
// the wait for own writes.
func (r *rights) workHandler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	reached := func(ctx context.Context, q queue, was, is *workv1alpha1.Work) {
		cluster, namespaces := r.reach.changed(was, is)
		for _, namespace := range namespaces {
			if namespace != "" {
				q.Add(request(cluster, access.In(namespace)))
				continue
			}
			for _, req := range r.ofAllOf(ctx, cluster) {
				q.Add(req)
			}
		}
	}
	enqueue := func(q queue, work *workv1alpha1.Work) {
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace)
		if source, is := access.Copied(work); is {
			q.Add(request(cluster, source))
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if work, ok := e.Object.(*workv1alpha1.Work); ok {
				if _, is := access.Copied(work); is {
					r.works.wrote.Observed(work)
				}
				enqueue(q, work) // what it is made for may be gone since
				reached(ctx, q, nil, work)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, ok := e.ObjectOld.(*workv1alpha1.Work)
			is, isToo := e.ObjectNew.(*workv1alpha1.Work)
			if !ok || !isToo {
				return
			}
			if _, copied := access.Copied(is); copied {
				r.works.wrote.Observed(is)
			}
			if was.Generation != is.Generation || !equality.Semantic.DeepEqual(was.Labels, is.Labels) || was.Annotations[access.RightsAnnotation] != is.Annotations[access.RightsAnnotation] {
				enqueue(q, was)
				enqueue(q, is)
			}
			reached(ctx, q, was, is)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if work, ok := e.Object.(*workv1alpha1.Work); ok {
				if _, is := access.Copied(work); is {
					r.works.wrote.Gone(work)
				}
				enqueue(q, work)
				reached(ctx, q, work, nil)
			}
		},
	}
}

// applyAsChanges passes clusters on that are to have rights now, or no longer. Of new
// ones is heard when they have room for Works.
func applyAsChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			now, isToo := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && isToo && access.AppliesAsAuthor(before) != access.AppliesAsAuthor(now)
		},
	}
}

// comesOrGoes passes on what is new, begins to go, or is gone.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// ruleChanges passes roles on whose rules changed.
func ruleChanges() predicate.Predicate {
	rules := func(obj client.Object) []rbacv1.PolicyRule {
		switch role := obj.(type) {
		case *rbacv1.Role:
			return role.Rules
		case *rbacv1.ClusterRole:
			return role.Rules
		}
		return nil
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(rules(e.ObjectOld), rules(e.ObjectNew))
	}}
}
