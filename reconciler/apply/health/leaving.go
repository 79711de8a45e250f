package health

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Leaving returns the objects that clusters still hold and are to remove, of all that the owner applied, or a
// Kustomization among removed, sorted. It finds objects that no status records, too, as it looks at every Work.
func (r *Reader) Leaving(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error) {
	var list workv1alpha1.WorkList
	if err := r.Hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works: %w", err)
	}
	owners := ownersAmong(owner, removed)
	known := map[inventory.ID]bool{}
	var out []inventory.ID
	for i := range list.Items {
		work := &list.Items[i]
		for _, id := range appliedBy(work, owners) {
			leaves, err := r.leaves(ctx, work, id)
			if err != nil {
				return nil, err
			}
			if leaves && !known[id] {
				known[id] = true
				out = append(out, id)
			}
		}
	}
	inventory.SortIDs(out)
	return out, nil
}

// appliedBy returns the objects in a Work that one of the Kustomizations applied. Most Works are of none of them:
// those whose text does not contain a name are not parsed.
func appliedBy(work *workv1alpha1.Work, owners []client.ObjectKey) []inventory.ID {
	var out []inventory.ID
	for _, m := range work.Spec.Workload.Manifests {
		if !slices.ContainsFunc(owners, func(o client.ObjectKey) bool { return bytes.Contains(m.Raw, []byte(o.Name)) }) {
			continue
		}
		id, obj, ok := inventory.OfManifest(m.Raw)
		if !ok {
			continue
		}
		if by, known := inventory.OwnerOf(obj); known && slices.Contains(owners, by) {
			out = append(out, id)
		}
	}
	return out
}
