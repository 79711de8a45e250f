package kustomizations

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// RecordTakenOver records in the status of a Kustomization that is about to be deleted what others take over of it, which kept returns, and
// reports whether that is anything.
func (k Store) RecordTakenOver(ctx context.Context, key client.ObjectKey, kept func(ctx context.Context, ks *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error)) (bool, error) {
	ks, found, err := k.Read(ctx, key)
	if err != nil || !found {
		return false, err
	}
	owned, err := inventory.Here(ks)
	if err != nil {
		return false, err
	}
	stays, err := kept(ctx, ks, owned)
	if err != nil || len(stays) == 0 {
		return false, err
	}
	after := ks.DeepCopy()
	inventory.RecordUndecided(&after.Status, inventory.Sorted(stays))
	return true, k.PatchStatus(ctx, ks, after)
}
