package riskyedits

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// renames finds override policies that leave with the revision and that new ones replace.
type renames struct{ *check }

// losses returns what a new override policy does not change any more, compared with the ones that leave with the
// revision, for templates that both select. It is taken to be such a policy renamed.
func (c renames) losses(ctx context.Context, id inventory.ID, after policyv1alpha1.Override) (finding, error) {
	left, err := c.overridesThatLeave(ctx)
	if err != nil {
		return finding{}, err
	}
	for _, before := range left {
		loss := riskyedit.Override(before.OverrideSpec(), after.OverrideSpec(), c.fleet)
		if loss.Mistake == "" || c.replaced(before, loss) {
			continue
		}
		found, err := c.takenBack(ctx, id, before, after, loss)
		if err != nil || len(found.clusters) > 0 {
			return found, err
		}
	}
	return finding{}, nil
}

// replaced reports whether an override policy of the revision makes the same changes as one that leaves, in all
// clusters of the loss.
func (c renames) replaced(before policyv1alpha1.Override, loss riskyedit.Loss) bool {
	return slices.ContainsFunc(c.revision.Changes, func(change applier.Change) bool {
		after := overrideOf(change.Desired)
		if after == nil {
			return false
		}
		was, is := before.OverrideSpec(), after.OverrideSpec()
		all := len(is.ResourceSelectors) == 0 || equality.Semantic.DeepEqual(is.ResourceSelectors, was.ResourceSelectors)
		return all && riskyedit.Does(is, was, loss.Clusters, c.fleet)
	})
}

// overridesThatLeave returns the override policies that the revision drops, as the hub has them.
func (c renames) overridesThatLeave(ctx context.Context) ([]policyv1alpha1.Override, error) {
	if !slices.ContainsFunc(c.revision.Removed, func(id inventory.ID) bool { return isOverride(id.GroupKind) }) {
		return nil, nil
	}
	all, err := overridesOf(ctx, c.hub)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o policyv1alpha1.Override) bool {
		return !slices.ContainsFunc(c.revision.Removed, func(id inventory.ID) bool {
			return isOverride(id.GroupKind) && id.Namespace == o.GetNamespace() && id.Name == o.GetName()
		})
	}), nil
}

func isOverride(kind schema.GroupKind) bool {
	return kind.Group == policyv1alpha1.GroupVersion.Group &&
		(kind.Kind == policyv1alpha1.ResourceKindOverridePolicy || kind.Kind == policyv1alpha1.ResourceKindClusterOverridePolicy)
}
