package inventory

import kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

// Deletes reports whether the end of a Kustomization is that of what it applied.
func Deletes(ks *kustomizev1.Kustomization) bool {
	if ks.Spec.Suspend {
		return false
	}
	switch ks.GetDeletionPolicy() {
	case kustomizev1.DeletionPolicyDelete, kustomizev1.DeletionPolicyWaitForTermination:
		return true
	case kustomizev1.DeletionPolicyMirrorPrune:
		return ks.Spec.Prune
	default:
		return false
	}
}
