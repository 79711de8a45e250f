package commitstatus

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
)

// isRefusedBySpec reports whether a Kustomization is refused by what it asks for itself.
func isRefusedBySpec(ks *kustomizev1.Kustomization) bool { return refusals.BySpec(reasonOf(ks)) }

// changed returns the revision that last changed what a Kustomization applies. Where its spec is refused, that is the one
// at which it is: the commit that brought the spec may change none of its files.
func changed(ks *kustomizev1.Kustomization) string {
	if isRefusedBySpec(ks) {
		return ks.Status.LastAttemptedRevision
	}
	return inventory.Changed(&ks.Status)
}

// asksSince reports whether a Kustomization is refused by a spec that came after the revision that it is at had been
// applied, and not with that: the commit is not to blame. It can be applied a moment before the spec that it brings,
// so that who made the Kustomization is asked whether the commit has changed that.
func (r *Reconciler) asksSince(ctx context.Context, ks *kustomizev1.Kustomization) (bool, error) {
	if !isRefusedBySpec(ks) || ks.Status.LastAppliedRevision != ks.Status.LastAttemptedRevision {
		return false, nil
	}
	key, owned := inventory.OwnerOf(ks)
	if !owned {
		return true, nil
	}
	parent := &kustomizev1.Kustomization{}
	if err := r.hub.Get(ctx, key, parent); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read the Kustomization %s that made it: %w", key, err)
	}
	if inventory.SourceOf(parent) != inventory.SourceOf(ks) {
		return true, nil
	}
	stands := parent.Status.LastAttemptedRevision == ks.Status.LastAttemptedRevision
	return stands && inventory.Changed(&parent.Status) != ks.Status.LastAttemptedRevision, nil
}
