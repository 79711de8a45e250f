package taintpolicy

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// clusterChanges lets clusters through that are new, whose conditions are others, or that
// policies may find now, or no longer. A change of taints alone is somebody's will.
func clusterChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			is, also := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && also && (was.UID != is.UID || !sameStatuses(was.Status.Conditions, is.Status.Conditions) || !foundBySame(was, is))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// sameStatuses reports whether conditions say the same, for whatever reason.
func sameStatuses(was, is []metav1.Condition) bool {
	return slices.EqualFunc(was, is, func(a, b metav1.Condition) bool { return a.Type == b.Type && a.Status == b.Status })
}

// foundBySame reports whether what affinities find a cluster by is the same.
func foundBySame(was, is *clusterv1alpha1.Cluster) bool {
	return maps.Equal(was.Labels, is.Labels) &&
		was.Spec.Provider == is.Spec.Provider && was.Spec.Region == is.Spec.Region &&
		was.Spec.Zone == is.Spec.Zone && slices.Equal(was.Spec.Zones, is.Spec.Zones)
}

// policyChanges lets policies through that are new, or say something else. One that
// goes takes nothing off, and those that a start finds come with all clusters.
func policyChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc:  func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
