// Package clusterprune decides from which clusters what left a revision is pruned, before it is pruned from the control plane.
//
// In go the objects that left and are kept until their replacement is applied, and the clusters in which it is. It
// writes these clusters into an annotation of the bindings (gitops.flotilla.io/pruned-from), and the loop that writes
// Works removes the Works there. The objects themselves stay on the control plane and in the other clusters: this
// package deletes nothing. Objects that are in the revision again return to all their clusters.
package clusterprune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Pruner annotates bindings. Use New.
type Pruner struct {
	hub client.Client
}

// New returns a Pruner. hub reads from a cache.
func New(hub client.Client) Pruner { return Pruner{hub: hub} }

// Due returns those of the entries that are still in a cluster in which they are replaced.
func (p Pruner) Due(ctx context.Context, entries []inventory.Entry, replaced rollup.Replaced) ([]inventory.Entry, error) {
	return p.those(ctx, entries, func(clusters []workv1alpha2.TargetCluster) bool { return len(replaced.In(clusters)) > 0 })
}

// Remaining returns those of the entries that are still in a cluster where they are not replaced.
func (p Pruner) Remaining(ctx context.Context, entries []inventory.Entry, replaced rollup.Replaced) ([]inventory.Entry, error) {
	return p.those(ctx, entries, func(clusters []workv1alpha2.TargetCluster) bool { return len(replaced.In(clusters)) < len(clusters) })
}

// those returns the entries whose clusters match. These are the clusters of the binding without those from which the
// object was pruned.
func (p Pruner) those(ctx context.Context, entries []inventory.Entry, match func([]workv1alpha2.TargetCluster) bool) ([]inventory.Entry, error) {
	var out []inventory.Entry
	for _, e := range entries {
		b, found, err := p.binding(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		if found && match(plan.SpecOf(b).Clusters) {
			out = append(out, e)
		}
	}
	return out, nil
}

// Prune removes entries from the clusters in which they are replaced.
func (p Pruner) Prune(ctx context.Context, entries []inventory.Entry, replaced rollup.Replaced) error {
	var errs []error
	for _, e := range entries {
		errs = append(errs, p.annotate(ctx, e.ID, func(b workv1alpha2.Binding) []string {
			return append(plan.PrunedFrom(b), replaced.In(plan.SpecOf(b).Clusters)...)
		}))
	}
	return errors.Join(errs...)
}

// Return lets objects that are wanted again return to all their clusters.
func (p Pruner) Return(ctx context.Context, ids []inventory.ID) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, p.annotate(ctx, id, func(workv1alpha2.Binding) []string { return nil }))
	}
	return errors.Join(errs...)
}

// annotate writes into the binding of an object from which clusters it is pruned. If the binding has changed meanwhile
// it writes nothing: the change starts another run.
func (p Pruner) annotate(ctx context.Context, id inventory.ID, from func(workv1alpha2.Binding) []string) error {
	b, found, err := p.binding(ctx, id)
	if err != nil || !found {
		return err
	}
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	plan.SetPrunedFrom(desired, from(b))
	if slices.Equal(plan.PrunedFrom(b), plan.PrunedFrom(desired)) {
		return nil
	}
	patch, some, err := bindings.Patch(b, desired)
	if err == nil && some {
		err = p.hub.Patch(ctx, desired, patch)
	}
	switch {
	case bindings.IsStale(err):
		return nil
	case err != nil:
		return fmt.Errorf("prune %s cluster by cluster: %w", inventory.Describe(id), err)
	}
	log.FromContext(ctx).Info("what left a revision goes from some clusters before the others", "object", inventory.Describe(id), "clusters", plan.PrunedFrom(desired))
	return nil
}

func (p Pruner) binding(ctx context.Context, id inventory.ID) (workv1alpha2.Binding, bool, error) {
	return bindings.Carrying(ctx, p.hub, id.GroupKind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
}
