package unifiedauth

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/access"
)

// impersonatorChanges passes clusters on that are new, or that have another
// impersonator.
func impersonatorChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
		now, isToo := e.ObjectNew.(*clusterv1alpha1.Cluster)
		return ok && isToo && (access.AccountsNamespace(before) != access.AccountsNamespace(now) ||
			!equality.Semantic.DeepEqual(before.Spec.ImpersonatorSecretRef, now.Spec.ImpersonatorSecretRef))
	}}
}

// newOnly passes on what was made.
func newOnly() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// granting passes roles on whose rules changed, if they let anybody reach any
// cluster, or did.
func granting() predicate.Predicate {
	grants := func(obj client.Object) bool {
		role, ok := obj.(*rbacv1.ClusterRole)
		return ok && access.GrantsAny(role)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return grants(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return grants(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*rbacv1.ClusterRole)
			now, isToo := e.ObjectNew.(*rbacv1.ClusterRole)
			return ok && isToo && (grants(before) || grants(now)) && !equality.Semantic.DeepEqual(before.Rules, now.Rules)
		},
	}
}

// subjectChanges passes bindings on that bind others than before.
func subjectChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !equality.Semantic.DeepEqual(subjectsOf(e.ObjectOld), subjectsOf(e.ObjectNew)) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	}
}

func subjectsOf(binding client.Object) []rbacv1.Subject {
	switch b := binding.(type) {
	case *rbacv1.RoleBinding:
		return b.Subjects
	case *rbacv1.ClusterRoleBinding:
		return b.Subjects
	}
	return nil
}

// workEvents passes Works of ours on that are gone, or that somebody edited. It
// ends the wait for own writes.
func (r *Reconciler) workEvents() predicate.Predicate {
	ours := func(obj client.Object) bool { return slices.Contains(access.WorkNames(), obj.GetName()) }
	seen := func(obj client.Object) {
		if work, ok := obj.(*workv1alpha1.Work); ok {
			r.works.wrote.Observed(work)
		}
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if ours(e.Object) {
				seen(e.Object)
			}
			return false
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if !ours(e.ObjectNew) {
				return false
			}
			seen(e.ObjectNew)
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			if !ours(e.Object) {
				return false
			}
			r.works.wrote.Gone(e.Object)
			return true
		},
	}
}
