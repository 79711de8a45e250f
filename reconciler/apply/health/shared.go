package health

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// shared returns a part for each object, of whatever kind, that a Kustomization of another source holds as well: each
// overwrites it at its interval. Inventories alone are no evidence, as tenants may write them: the object's
// labels have to name the other one, or the owner, and then the other one is of its namespace.
func shared(ctx context.Context, r Deps, owner client.ObjectKey, entries []inventory.Entry) ([]rollup.Part, error) {
	others, err := ofOtherSources(ctx, r.Hub, owner)
	if err != nil || len(others) == 0 {
		return nil, err
	}
	mine := make(map[string]inventory.Entry, len(entries))
	for _, e := range entries {
		mine[e.ID.String()] = e
	}
	var parts []rollup.Part
	for _, ks := range others {
		for _, ref := range ks.Status.Inventory.Entries {
			e, both := mine[ref.ID]
			if !both {
				continue
			}
			part, taken, err := sharedWith(ctx, r.Live, owner, e, client.ObjectKeyFromObject(ks))
			if err != nil {
				return nil, err
			}
			if taken && !slices.ContainsFunc(parts, func(p rollup.Part) bool { return p.Object == part.Object }) {
				parts = append(parts, part)
			}
		}
	}
	return parts, nil
}

// ofOtherSources returns the Kustomizations that apply what another source than the owner's holds. They are the cache's own.
func ofOtherSources(ctx context.Context, hub client.Reader, owner client.ObjectKey) ([]*kustomizev1.Kustomization, error) {
	var list kustomizev1.KustomizationList
	if err := hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Kustomizations: %w", err)
	}
	at := slices.IndexFunc(list.Items, func(ks kustomizev1.Kustomization) bool { return client.ObjectKeyFromObject(&ks) == owner })
	if at < 0 {
		return nil, nil
	}
	source := inventory.SourceOf(&list.Items[at])
	var out []*kustomizev1.Kustomization
	for i := range list.Items {
		ks := &list.Items[i]
		if i != at && ks.DeletionTimestamp == nil && !ks.Spec.Suspend && ks.Status.Inventory != nil && inventory.SourceOf(ks) != source && inventory.PlaceOf(ks.Status) == (inventory.Place{}) {
			out = append(out, ks)
		}
	}
	return out, nil
}

// sharedWith returns the part for an object that is in the inventories of the owner and of another one, and whether one of them takes it.
func sharedWith(ctx context.Context, live client.Reader, owner client.ObjectKey, e inventory.Entry, other client.ObjectKey) (rollup.Part, bool, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(e.GroupVersionKind())
	err := live.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, obj)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return rollup.Part{}, false, nil
	case err != nil:
		return rollup.Part{}, false, fmt.Errorf("look who has %s: %w", inventory.Describe(e.ID), err)
	}
	by, _ := inventory.OwnerOf(obj)
	if by == owner && other.Namespace == owner.Namespace {
		obj.Labels = inventory.OwnerLabels(other)
	} else if by != other {
		return rollup.Part{}, false, nil
	}
	reason, taken := takenBy(owner, obj)
	return rollup.Part{Object: nameOf(e.ID, obj), State: rollup.Progressing, Reason: reason}, taken, nil
}
