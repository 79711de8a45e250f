package switchover

import (
	"context"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// drops reports whether a Kustomization is about to be deleted, as the one that made it goes, or does not hold it at the artifact; namespace
// is that of the one which asks.
func (f forecast) drops(ctx context.Context, ks *kustomizev1.Kustomization, namespace string, at siblings.Artifact) (bool, error) {
	by, owned := inventory.OwnerOf(ks)
	if !owned || applier.OptedOut(ks) {
		return false, nil
	}
	maker, err := f.order.read(ctx, by)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if maker.DeletionTimestamp != nil {
		return inventory.Deletes(maker) && decide(maker, at) != 0, nil
	}
	if at.Digest == "" || !maker.Spec.Prune || !f.siblings.Is(maker, namespace, at) || decide(maker, at) == 0 {
		return false, nil
	}
	wants, err := f.siblings.Wants(ctx, maker, at)
	if err != nil || len(wants.Entries) == 0 { // it cannot be built
		return false, err
	}
	return !slices.ContainsFunc(wants.Children, func(child *kustomizev1.Kustomization) bool {
		return client.ObjectKeyFromObject(child) == client.ObjectKeyFromObject(ks)
	}), nil
}

// yetToDrop reports whether another one than of made a Kustomization, and has yet to apply the artifact, which does not hold that any more: until then what it
// holds is carried like anything else.
func (f forecast) yetToDrop(ctx context.Context, ks, of *kustomizev1.Kustomization, at siblings.Artifact) (bool, error) {
	if maker, _ := inventory.OwnerOf(ks); !inventory.Deletes(ks) || maker == client.ObjectKeyFromObject(of) {
		return false, nil
	}
	may, err := f.mayChange(ctx, ks, at)
	if err != nil || !may {
		return false, err
	}
	if drops, err := f.drops(ctx, ks, of.Namespace, at); err != nil || !drops {
		return false, err
	}
	ordered, err := f.order.between(ctx, ks, of)
	return !ordered && err == nil, err
}

// deepest is how many Kustomizations are looked at above one. Who makes his own maker would else be looked for without an end.
const deepest = 20

// stays reports whether a Kustomization has left the revision of the one that made it, or that one has in turn, and waits to be deleted until
// what replaces it is healthy, and holds templates alone: these are left as they stand until then, so that nobody needs to wait for it. Who
// does may be what is to be healthy.
func (f forecast) stays(ctx context.Context, ks *kustomizev1.Kustomization) (bool, error) {
	if holdsRules(ks) {
		return false, nil
	}
	for range deepest {
		by, owned := inventory.OwnerOf(ks)
		if !owned || ks.DeletionTimestamp != nil || !inventory.Deletes(ks) {
			return false, nil
		}
		maker, err := f.order.read(ctx, by)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if slices.Contains(inventory.Leaving(maker.Status), inventory.OfKustomization(client.ObjectKeyFromObject(ks))) {
			return !maker.Spec.Suspend, nil
		}
		ks = maker
	}
	return false, nil
}

// holdsRules reports whether a Kustomization has applied policies or overrides.
func holdsRules(ks *kustomizev1.Kustomization) bool {
	return ks.Status.Inventory != nil && slices.ContainsFunc(ks.Status.Inventory.Entries, func(ref kustomizev1.ResourceRef) bool {
		return strings.Contains(ref.ID, "_"+policyv1alpha1.GroupVersion.Group+"_")
	})
}

// Deciding are Kustomizations and those that made them, which decide whether they stay.
func (x *Groups) Deciding(ctx context.Context, with []client.ObjectKey) []client.ObjectKey {
	out := slices.Clone(with)
	for _, key := range with {
		if ks, err := x.order.read(ctx, key); err == nil {
			maker, _ := inventory.OwnerOf(ks)
			out = append(out, maker)
		}
	}
	return sorted(out, client.ObjectKey{})
}
