package remark

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Mend returns what to correct about a revision that cannot be applied for that reason: its files, or its path, which stands in
// the Kustomization.
func Mend(ks *kustomizev1.Kustomization, reason string) string {
	if reason != inventory.ReasonPathNotFound {
		return "correct the files and commit"
	}
	if owner, owned := inventory.OwnerOf(ks); owned {
		return fmt.Sprintf("correct spec.path where Kustomization %s has it, or add that folder, and commit", owner)
	}
	return fmt.Sprintf("correct spec.path: flotilla edit kustomization %s -n %s, or commit that folder", ks.Name, ks.Namespace)
}
