package namespace

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
)

// contentChanges passes namespaces on that are new or gone, or whose labels or
// annotations changed: members get nothing else of them.
func contentChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			_, execution := workv1alpha2.ClusterOfExecutionNamespace(e.Object.GetName())
			return !execution
		},
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

// workEvents passes Works on that are gone, that may end for the next one, or that somebody edited, and at a start those whose namespace was wanted
// again: it may have gone since. It ends the wait for own writes: what the cache has shown is not missed when it goes.
func (r *Reconciler) workEvents() predicate.Predicate {
	seen := func(obj client.Object) {
		if work, ok := obj.(*workv1alpha1.Work); ok {
			r.wrote.Observed(work)
		}
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			seen(e.Object)
			return e.Object.GetAnnotations()[workv1alpha2.WantedAgainAnnotation] != ""
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			seen(e.ObjectNew)
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || released(e.ObjectNew) && !released(e.ObjectOld)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.wrote.Gone(e.Object)
			return true
		},
	}
}

func released(obj client.Object) bool {
	work, ok := obj.(*workv1alpha1.Work)
	return ok && undelete.Released(work)
}

// overrides looks at all namespaces where an override counts otherwise that selects some.
func (r *Reconciler) overrides(ctx context.Context) revisiongate.Listener {
	var ending sync.Map // the Kustomizations that end with such an override
	all := func() {
		for _, req := range r.all(ctx, nil) {
			r.inbox.Add(req, false)
		}
	}
	return revisiongate.Listener{
		Override: func(versions ...policyv1alpha1.Override) {
			if slices.ContainsFunc(versions, selectsNamespaces) {
				all()
			}
		},
		Ending: func(owner client.ObjectKey, versions ...policyv1alpha1.Override) {
			if slices.ContainsFunc(versions, selectsNamespaces) {
				ending.Store(owner, true)
			}
		},
		Ended: func(owner client.ObjectKey) {
			if _, found := ending.LoadAndDelete(owner); found {
				all()
			}
		},
	}
}

func resourceOf(namespace *corev1.Namespace) selector.Resource {
	return selector.Resource{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Namespace", Name: namespace.Name, Labels: namespace.Labels}
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
