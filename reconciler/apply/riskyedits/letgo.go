package riskyedits

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// LetGo annotates the Works of volume claims that the revision removes from clusters, and whose name, or whose policy's
// name, people have allowed. Without the annotation the claims would stay in the clusters. Call it only for a revision
// that Check does not refuse.
func LetGo(ctx context.Context, hub client.Client, r Revision) error {
	c := check{hub: hub, revision: r}
	over := takeovers{&c}
	if !over.reassigns() {
		return nil
	}
	if err := c.readBound(ctx); err != nil || len(c.precious) == 0 {
		return err
	}
	policies, err := over.takers(ctx)
	if err != nil {
		return err
	}
	for _, change := range r.Changes {
		if change.Writes() && propagationOf(change.Desired) != nil {
			policies = append(policies, inventory.IDOf(change.Desired))
		}
	}
	for _, policy := range policies {
		works, err := c.namedBy(ctx, policy)
		if err != nil {
			return err
		}
		for _, work := range works {
			if err := letGo(ctx, hub, work); err != nil {
				return err
			}
		}
	}
	return c.others.unread
}

// namedBy returns the Works of volume claims that a policy removes from their clusters, as people have allowed by name.
func (c *check) namedBy(ctx context.Context, policy inventory.ID) ([]*workv1alpha1.Work, error) {
	if err := c.readBound(ctx); err != nil || len(c.precious) == 0 {
		return nil, err
	}
	if err := c.readFleet(ctx); err != nil {
		return nil, err
	}
	if err := c.readWorld(ctx); err != nil {
		return nil, err
	}
	var out []*workv1alpha1.Work
	for _, b := range c.precious {
		of := b.BindingSpec().Resource
		id := inventory.ID{GroupKind: bindings.TemplateOf(b).GroupKind(), Namespace: of.Namespace, Name: of.Name}
		if !volumes.IsVolumeClaim(id.GroupKind) || !c.revision.Allowed.Names(policy) && !c.revision.Allowed.Names(id) {
			continue
		}
		for _, cluster := range c.leaves(b, policy) {
			work, found, err := bindings.WorkIn(ctx, c.hub, b, cluster)
			if err != nil {
				return nil, err
			}
			if found && !volumes.Released(work) {
				out = append(out, work)
			}
		}
	}
	return out, nil
}

// letGo annotates a Work, so that its claim is deleted along with it.
func letGo(ctx context.Context, hub client.Client, work *workv1alpha1.Work) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": work.UID, "annotations": map[string]string{workv1alpha2.AllowCascadeAnnotation: "true"},
	}})
	if err == nil {
		err = hub.Patch(ctx, work.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil && !bindings.IsStale(err) {
		return fmt.Errorf("let go of the claim of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	log.FromContext(ctx).Info("a claim that was named goes with its work", "namespace", work.Namespace, "work", work.Name)
	return nil
}
