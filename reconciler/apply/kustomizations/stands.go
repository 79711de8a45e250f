package kustomizations

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// IsApplied reports whether the status says that a revision was applied by the current generation and is ready, and that
// nothing has yet to be removed. It is false where variables may have changed meanwhile, and while a switch is under
// way.
func IsApplied(ks *kustomizev1.Kustomization, revision string) bool {
	status := ks.Status
	if post := ks.Spec.PostBuild; post != nil && len(post.SubstituteFrom) > 0 {
		return false
	}
	return apimeta.IsStatusConditionTrue(status.Conditions, meta.ReadyCondition) && len(inventory.Leaving(status)) == 0 && !apimeta.IsStatusConditionTrue(status.Conditions, revisiongate.Condition) &&
		status.ObservedGeneration == ks.Generation &&
		status.LastAppliedRevision == revision &&
		status.LastHandledReconcileAt == ks.Annotations[meta.ReconcileRequestAnnotation]
}
