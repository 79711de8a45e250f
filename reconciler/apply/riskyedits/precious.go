package riskyedits

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// readBound reads all bindings, once, and finds those of precious kinds, and those of what goes along with others.
func (c *check) readBound(ctx context.Context) error {
	if c.bound != nil {
		return nil
	}
	c.bound = map[client.ObjectKey]workv1alpha2.Binding{}
	err := bindings.Each(ctx, c.hub, func(b workv1alpha2.Binding) {
		c.bound[client.ObjectKeyFromObject(b)] = b
		if b.GetDeletionTimestamp() != nil {
			return
		}
		if inventory.PreciousKind(bindings.TemplateOf(b).GroupKind()) != "" {
			c.precious = append(c.precious, b)
		}
		if len(b.BindingSpec().RequiredBy) > 0 {
			c.along = append(c.along, b)
		}
	})
	if err != nil {
		return fmt.Errorf("find what clusters hold: %w", err)
	}
	return nil
}

// preciousBy returns the precious objects that a policy would remove from clusters, whether or not it looks like a
// mistake, without those that people have allowed by name.
func (c *check) preciousBy(ctx context.Context, policy inventory.ID) (finding, error) {
	if err := c.readBound(ctx); err != nil || len(c.precious) == 0 || c.revision.Allowed.Names(policy) {
		return finding{}, err
	}
	if err := c.readWorld(ctx); err != nil {
		return finding{}, err
	}
	out, counted := finding{policy: policy}, &summary{}
	goes, stays := "", ""
	for _, b := range c.precious {
		of := bindings.TemplateOf(b)
		id := inventory.ID{GroupKind: of.GroupKind(), Namespace: b.BindingSpec().Resource.Namespace, Name: b.BindingSpec().Resource.Name}
		clusters := c.leaves(b, policy)
		if len(clusters) == 0 || c.revision.Allowed.Names(id) {
			continue
		}
		counted.add(b, clusters)
		out.precious = append(out.precious, c.revision.Allowed.NameOf(id))
		if preserves(c.world.next[policy], b) {
			stays = fmt.Sprintf("a %s stays in clusters that it leaves, as its policy preserves it", of.Kind)
		} else {
			goes = fmt.Sprintf("a %s goes with %s", of.Kind, inventory.PreciousKind(of.GroupKind()))
		}
	}
	out.mistake = cmp.Or(goes, stays)
	out.does, out.clusters = "take "+counted.String()+" out of", counted.clusters
	return out, nil
}

// preserves reports whether a volume claim stays in the clusters that its binding leaves: both the binding and the next
// policy have to preserve it. It is false for a claim that is propagated as a dependency, as that is not known then.
func preserves(next policyv1alpha1.Policy, b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	return next != nil && volumes.IsVolumeClaim(bindings.TemplateOf(b).GroupKind()) && len(spec.RequiredBy) == 0 &&
		ptr.Deref(spec.PreserveResourcesOnDeletion, false) && ptr.Deref(next.PropagationSpec().PreserveResourcesOnDeletion, false)
}

// leaves returns the clusters that a binding loses by a policy: by its own, or by that of the bindings which it is
// attached to as a dependency. A cluster that another of these keeps is not among them.
func (c *check) leaves(b workv1alpha2.Binding, policy inventory.ID) []string {
	return withdrawals{c}.dependency(b, policy).Lost()
}

// lost returns the clusters of a binding that it loses as one policy carries it after another one.
func (c *check) lost(b workv1alpha2.Binding, before, after policyv1alpha1.Policy) []string {
	if before == nil || after == nil {
		return nil
	}
	loss := riskyedit.Propagation(before.PropagationSpec(), after.PropagationSpec(), c.fleet)
	var out []string
	for _, t := range b.BindingSpec().Clusters {
		if loss.In(t.Name, b.BindingSpec().Replicas > 0) {
			out = append(out, t.Name)
		}
	}
	return out
}
