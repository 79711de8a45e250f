package unifiedauth

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
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
	"github.com/flotilla-io/flotilla/internal/lanes"
	"github.com/flotilla-io/flotilla/policies/access"
)

// rights brings the hub's roles and bindings to the members that apply as the author.
// Requests name a namespace, or, with wholeCluster, what holds everywhere.
type rights struct{ *Reconciler }

// wholeCluster is no name of a namespace.
const wholeCluster = "*"

// register adds the loop to mgr.
func (r rights) register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("unifiedauth-rights").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.options.Workers, NewQueue: lanes.New[reconcile.Request]}).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(applyAsChanges())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace), builder.WithPredicates(comesOrGoes())).
		Watches(&rbacv1.Role{}, handler.EnqueueRequestsFromMapFunc(inNamespace), builder.WithPredicates(ruleChanges())).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(inNamespaceAndAll), builder.WithPredicates(subjectChanges())).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(everywhere), builder.WithPredicates(ruleChanges())).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(everywhere), builder.WithPredicates(subjectChanges())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(rightsOfWork), builder.WithPredicates(r.rightsEvents())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the loop of rights in members: %w", err)
	}
	return nil
}

// Reconcile makes the Works of one namespace what they should be, in all clusters.
func (r rights) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace := req.Name
	if namespace == wholeCluster {
		namespace = ""
	}
	given, err := r.given(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list clusters: %w", err)
	}
	var errs []error
	for i := range clusters.Items {
		errs = append(errs, r.to(ctx, &clusters.Items[i], namespace, given))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// to brings rights to one cluster, or takes from it what it is to have no longer.
func (r rights) to(ctx context.Context, cluster *clusterv1alpha1.Cluster, namespace string, given []*unstructured.Unstructured) error {
	open, err := r.open(ctx, cluster)
	if err != nil || !open {
		return err
	}
	work, err := access.RightsWork(cluster, namespace, given)
	if err != nil {
		return err
	}
	if work == nil {
		return r.remove(ctx, cluster, access.RightsWorkName(namespace))
	}
	_, err = r.put(ctx, work)
	return err
}

// given are the rights that hold in a namespace, or, with none, in all of a cluster.
func (r rights) given(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	hub := access.Hub{Namespace: namespace}
	if namespace != "" {
		reaches, err := r.reaches(ctx, namespace)
		if err != nil || !reaches {
			return nil, err
		}
	}
	var bindings rbacv1.RoleBindingList
	if err := r.hub.List(ctx, &bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list role bindings: %w", err)
	}
	for _, b := range pointers(bindings.Items) {
		if !r.skip.SkipsNamespace(b.Namespace) {
			hub.Bindings = append(hub.Bindings, b)
		}
	}
	if namespace != "" {
		var roles rbacv1.RoleList
		if err := r.hub.List(ctx, &roles, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list roles: %w", err)
		}
		hub.Roles = pointers(roles.Items)
		return hub.Rights()
	}
	var roles rbacv1.ClusterRoleList
	if err := r.hub.List(ctx, &roles, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list cluster roles: %w", err)
	}
	var everywhere rbacv1.ClusterRoleBindingList
	if err := r.hub.List(ctx, &everywhere, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list cluster role bindings: %w", err)
	}
	hub.ClusterRoles, hub.ClusterBindings = pointers(roles.Items), pointers(everywhere.Items)
	return hub.Rights()
}

// reaches says whether what is in a namespace may reach members. One that goes takes
// its rights along.
func (r rights) reaches(ctx context.Context, namespace string) (bool, error) {
	if r.skip.SkipsNamespace(namespace) {
		return false, nil
	}
	found := &corev1.Namespace{}
	err := r.hub.Get(ctx, client.ObjectKey{Name: namespace}, found, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return found.DeletionTimestamp.IsZero(), nil
}

// remove deletes a Work of the cluster's, if it is there.
func (r *Reconciler) remove(ctx context.Context, cluster *clusterv1alpha1.Cluster, name string) error {
	work := &workv1alpha1.Work{}
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster.Name), Name: name}
	err := r.hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy)
	latest, found := r.wrote.Latest(key, work, err == nil)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read work %s: %w", key, err)
	}
	if !found || !metav1.IsControlledBy(latest, cluster) || !latest.DeletionTimestamp.IsZero() {
		return nil
	}
	err = r.hub.Delete(ctx, latest.DeepCopy(), client.Preconditions{UID: ptr.To(latest.UID)})
	if err != nil && !apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("Took rights from a member", "work", key.String())
	return nil
}

// all names every namespace, and the whole cluster: a cluster is to have them, or no
// longer.
func (r rights) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list corev1.NamespaceList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list namespaces")
		return nil
	}
	out := named(wholeCluster, true)
	for i := range list.Items {
		if name := list.Items[i].Name; !r.skip.SkipsNamespace(name) {
			out = append(out, named(name, true)...)
		}
	}
	return out
}

// ofNamespace names the namespace itself, or, where it is a cluster's execution
// namespace, all that the cluster is to have.
func (r rights) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	if _, ok := workv1alpha2.ClusterOfExecutionNamespace(namespace.GetName()); ok {
		return r.all(ctx, namespace)
	}
	return named(namespace.GetName(), !r.skip.SkipsNamespace(namespace.GetName()))
}

func inNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	return named(obj.GetNamespace(), true)
}

func inNamespaceAndAll(_ context.Context, obj client.Object) []reconcile.Request {
	return append(named(obj.GetNamespace(), true), named(wholeCluster, true)...)
}

func everywhere(context.Context, client.Object) []reconcile.Request { return named(wholeCluster, true) }

// rightsOfWork names the namespace that a Work of rights is for.
func rightsOfWork(_ context.Context, work client.Object) []reconcile.Request {
	namespace, ok := work.GetLabels()[access.RightsLabel]
	if namespace == "" {
		namespace = wholeCluster
	}
	return named(namespace, ok)
}

// rightsEvents passes Works of rights on that are gone, or that somebody edited. It
// ends the wait for own writes.
func (r rights) rightsEvents() predicate.Predicate {
	seen := func(obj client.Object) bool {
		_, ok := obj.GetLabels()[access.RightsLabel]
		if work, is := obj.(*workv1alpha1.Work); is && ok {
			r.wrote.Observed(work)
		}
		return ok
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { seen(e.Object); return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return seen(e.ObjectNew) && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			_, ok := e.Object.GetLabels()[access.RightsLabel]
			if ok {
				r.wrote.Gone(client.ObjectKeyFromObject(e.Object))
			}
			return ok
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
