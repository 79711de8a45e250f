package namespace

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// contentChanges passes namespaces on that are new, or whose labels or
// annotations changed: members get nothing else of them.
func contentChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// clusterChanges passes clusters on that join, or whose labels changed: overrides may
// select them now. Most that join are heard of by their execution namespace as well, but
// that may have been there before. Those that a start finds come with all namespaces.
func clusterChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// workEvents passes Works on that are gone, or that somebody edited. It ends the
// wait for own writes: what the cache has shown is not missed when it goes.
func (r *Reconciler) workEvents() predicate.Predicate {
	seen := func(obj client.Object) {
		if work, ok := obj.(*workv1alpha1.Work); ok {
			r.wrote.Observed(work)
		}
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			seen(e.Object)
			return false
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			seen(e.ObjectNew)
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.wrote.Gone(client.ObjectKeyFromObject(e.Object))
			return true
		},
	}
}

// overridesNamespaces passes overrides on that select namespaces, or did.
func overridesNamespaces() predicate.Predicate {
	selects := func(obj client.Object) bool {
		o, ok := obj.(policyv1alpha1.Override)
		return ok && selectsNamespaces(o)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return selects(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return selects(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return selects(e.ObjectOld) || selects(e.ObjectNew) },
		GenericFunc: func(e event.GenericEvent) bool { return selects(e.Object) },
	}
}

func selectsNamespaces(o policyv1alpha1.Override) bool {
	selectors := o.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return true
	}
	for _, s := range selectors {
		if s.APIVersion == corev1.SchemeGroupVersion.String() && s.Kind == "Namespace" {
			return true
		}
	}
	return false
}
