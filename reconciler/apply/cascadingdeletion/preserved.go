package cascadingdeletion

import (
	"context"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Places reports whether any of the changes writes a propagation policy: see Revision.
func Places(changes []applier.Change) bool {
	return slices.ContainsFunc(changes, func(c applier.Change) bool {
		return c.Writes() && inventory.StageOf(c.Desired.GroupVersionKind().GroupKind()) == inventory.Policies
	})
}

// preserved returns those of the objects that are volume claims and that clusters keep, by their policy, when they are
// deleted here. A claim that is also propagated as a dependency is not among them, as the order in which its users
// are deleted is not known.
func (c *Counter) preserved(ctx context.Context, of []inventory.ID) ([]inventory.ID, error) {
	var out []inventory.ID
	for _, id := range of {
		if id.GroupKind != volumeClaimKind {
			continue
		}
		b, found, err := bindings.Get(ctx, c.hub, bindings.KeyOf(templatestore.Key{GroupVersionKind: volumeClaimKind.WithVersion("v1"), Namespace: id.Namespace, Name: id.Name}))
		if err != nil {
			return nil, err
		}
		if !found || bindings.TemplateOf(b).GroupKind() != id.GroupKind || len(b.BindingSpec().RequiredBy) > 0 {
			continue
		}
		_, carried := propagation.Claimed(b)
		if carried && ptr.Deref(b.BindingSpec().PreserveResourcesOnDeletion, false) {
			out = append(out, id)
		}
	}
	return out, nil
}
