package commitstatus

import (
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// reasonOf is the reason of a Kustomization's condition Ready; empty where it has none.
func reasonOf(ks *kustomizev1.Kustomization) string {
	if ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition); ready != nil {
		return ready.Reason
	}
	return ""
}

// isRetired reports whether a Kustomization has nothing to apply any more, and is to be removed by one of all that is
// not applied either: once that is mended, it goes.
func isRetired(ks *kustomizev1.Kustomization, all []kustomizev1.Kustomization) bool {
	parent, owned := inventory.OwnerOf(ks)
	if !owned || reasonOf(ks) != inventory.ReasonPathNotFound {
		return false
	}
	return slices.ContainsFunc(all, func(of kustomizev1.Kustomization) bool {
		ready := apimeta.FindStatusCondition(of.Status.Conditions, meta.ReadyCondition)
		return client.ObjectKeyFromObject(&of) == parent && ready != nil && ready.Status == metav1.ConditionFalse && !slices.Contains(passing, ready.Reason)
	})
}
