package riskyedits

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// takeovers finds policies that the revision does not change, and that claim templates because of it.
type takeovers struct{ *check }

// takers returns the policies that the revision does not change and that come to claim a template because of it: the
// template's policy is dropped or selects it no more, or the template's labels change. It looks only for policies that
// may remove something from clusters by that, and returns nil if there are none.
func (c takeovers) takers(ctx context.Context) ([]inventory.ID, error) {
	if !c.reassigns() {
		return nil, nil
	}
	if err := c.readFleet(ctx); err != nil {
		return nil, err
	}
	if err := c.readWorld(ctx); err != nil {
		return nil, err
	}
	if err := c.readBound(ctx); err != nil {
		return nil, err
	}
	unwritten := maps.Clone(c.world.next)
	for _, change := range c.revision.Changes {
		if change.Writes() {
			delete(unwritten, inventory.IDOf(change.Desired))
		}
	}
	if len(c.precious) == 0 {
		maps.DeleteFunc(unwritten, func(_ inventory.ID, p policyv1alpha1.Policy) bool {
			withdraws := len(c.along) > 0 && !propagation.TakesAlong(p.PropagationSpec())
			return !withdraws && !riskyedit.Suspect(p.PropagationSpec(), c.fleet)
		})
	}
	if len(unwritten) == 0 {
		return nil, nil
	}
	found := map[inventory.ID]bool{}
	for _, b := range c.bound {
		before, after := c.carriers(b)
		if before != nil && after != nil && idOf(before) != idOf(after) && unwritten[idOf(after)] != nil {
			found[idOf(after)] = true
		}
	}
	out := make([]inventory.ID, 0, len(found))
	for id := range found {
		out = append(out, id)
	}
	inventory.SortIDs(out)
	return out, nil
}

// reassigns reports whether the revision may change which policy a template has.
func (c takeovers) reassigns() bool {
	for _, id := range c.revision.Removed {
		if isPropagation(id.GroupKind) {
			return true
		}
	}
	for _, change := range c.revision.Changes {
		if !change.Writes() {
			continue
		}
		if isPropagation(change.Desired.GroupVersionKind().GroupKind()) {
			return true
		}
		if there := c.revision.Seen[inventory.IDOf(change.Desired)]; there != nil && relabels(there, change.Desired) {
			return true
		}
	}
	return false
}

// relabels reports whether an apply would change the labels of an object.
func relabels(there, desired *unstructured.Unstructured) bool {
	was, is := there.GetLabels(), desired.GetLabels()
	for key, value := range is {
		if had, ok := was[key]; !ok || had != value {
			return true
		}
	}
	for key := range was {
		if _, kept := is[key]; !kept && fromGit(there, "metadata", "labels", key) {
			return true
		}
	}
	return false
}

func isPropagation(kind schema.GroupKind) bool {
	return kind.Group == policyv1alpha1.GroupVersion.Group &&
		(kind.Kind == policyv1alpha1.ResourceKindPropagationPolicy || kind.Kind == policyv1alpha1.ResourceKindClusterPropagationPolicy)
}

// losses returns what the takers would remove from clusters, without what people have allowed.
func (c takeovers) losses(ctx context.Context) ([]finding, error) {
	ids, err := c.takers(ctx)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, id := range ids {
		mistaken, err := c.mistaken(ctx, id)
		if err != nil {
			return nil, err
		}
		precious, err := c.preciousBy(ctx, id)
		if err != nil {
			return nil, err
		}
		withdrawn, err := withdrawals{c.check}.losses(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, f := range []finding{mistaken, precious, withdrawn} {
			if len(f.clusters) > 0 {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func (c takeovers) mistaken(ctx context.Context, id inventory.ID) (finding, error) {
	if c.revision.Allowed.Lets(id) || !riskyedit.Suspect(c.world.next[id].PropagationSpec(), c.fleet) {
		return finding{}, nil
	}
	return c.takenOut(ctx, id)
}
