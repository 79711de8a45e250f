package cascadingdeletion

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// deepest is how many levels of Kustomizations that apply Kustomizations are followed.
const deepest = 8

// Descendants returns, for each Kustomization among the entries that the owner applied, what is deleted along with it. It has to
// be read before the deletion: once those Kustomizations are gone, nobody else knows what clusters have yet to remove.
// The list is empty for entries of other kinds, and for a Kustomization that another one owns.
func Descendants(ctx context.Context, live client.Reader, owner client.ObjectKey, entries []inventory.Entry) (map[inventory.ID][]inventory.ID, error) {
	out := map[inventory.ID][]inventory.ID{}
	for _, e := range entries {
		ids, err := ownedBy(ctx, live, owner, e, deepest)
		if err != nil {
			return nil, err
		}
		out[e.ID] = ids
	}
	return out, nil
}

func ownedBy(ctx context.Context, live client.Reader, owner client.ObjectKey, e inventory.Entry, depth int) ([]inventory.ID, error) {
	if e.ID.GroupKind != kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind() || depth == 0 {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}
	ks := &kustomizev1.Kustomization{}
	if err := live.Get(ctx, key, ks); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		return nil, nil
	}
	if by, _ := inventory.OwnerOf(ks); by != owner {
		return nil, nil // it is another one's, and stays
	}
	ids := inventory.Removed(ks.Status)
	owned, err := inventory.Here(ks)
	if err != nil || !inventory.Deletes(ks) {
		return ids, nil // its own loop reports what cannot be read
	}
	for _, o := range owned {
		below, err := ownedBy(ctx, live, key, o, depth-1)
		if err != nil {
			return nil, err
		}
		ids = append(append(ids, o.ID), below...)
	}
	return ids, nil
}
