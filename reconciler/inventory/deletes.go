package inventory

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Deletes reports whether the deletion of a Kustomization also deletes what it applied.
func Deletes(ks *kustomizev1.Kustomization) bool { return Keeps(ks) == "" }

// Keeps returns why the deletion of a Kustomization leaves what it applied, as a value of KeepsAnnotation; empty if it
// does not.
func Keeps(ks *kustomizev1.Kustomization) string {
	switch policy := ks.GetDeletionPolicy(); {
	case ks.Spec.Suspend:
		return gitopsv1alpha1.KeepsSuspended
	case policy == kustomizev1.DeletionPolicyDelete, policy == kustomizev1.DeletionPolicyWaitForTermination:
		return ""
	case policy != kustomizev1.DeletionPolicyMirrorPrune:
		return gitopsv1alpha1.KeepsOrphans
	case ks.Spec.Prune:
		return ""
	default:
		return gitopsv1alpha1.KeepsUnpruned
	}
}
