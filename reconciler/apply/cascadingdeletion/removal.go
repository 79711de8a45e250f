package cascadingdeletion

import (
	"context"
	"errors"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Removal is what a revision removes of a Kustomization's objects.
type Removal struct {
	Of *kustomizev1.Kustomization
	// Revision is the name of the revision, and By what else the Counter has to know of it.
	Revision string
	By       Revision
	// Owned is what the Kustomization owned before, Deleted what the revision deletes, Desired what it holds, and Stays what left it
	// and stays for now.
	Owned, Deleted, Desired, Stays []inventory.Entry
	// May is what people have allowed.
	May inventory.Allowance
}

// Check returns an error of class loop.ClassStalled if a revision removes more than it may; it is an *inventory.Refusal where the brake
// says so. What an earlier revision was allowed to drop does not count again: it is kept only until it is replaced.
func (c *Counter) Check(ctx context.Context, brake inventory.Brake, r Removal) error {
	before := inventory.LetGo(r.Of.Status)
	dropped, err := c.Staying(ctx, slices.DeleteFunc(slices.Clone(r.Deleted), func(e inventory.Entry) bool { return slices.Contains(before, e.ID) }))
	if err != nil {
		return err
	}
	owned := len(r.Owned) - (len(r.Deleted) - len(dropped))
	if dropped = inventory.WithoutRegenerated(dropped, r.Desired); len(dropped) == 0 {
		return nil
	}
	lost, err := c.Of(ctx, dropped, r.By)
	if err != nil {
		return err
	}
	return r.Judge(brake, owned, dropped, lost)
}

// Judge returns the error of Check, for a removal that was counted: of so many objects that the Kustomization owns, these are
// dropped, with these losses.
func (r Removal) Judge(brake inventory.Brake, owned int, dropped []inventory.Entry, lost []inventory.Loss) error {
	stands := r.Of.Status.LastAppliedRevision == r.Revision
	inventory.FlagLast(lost, slices.Concat(r.Desired, r.Stays))
	err := brake.Check(owned, lost, r.May, r.Revision)
	if refusal := (*inventory.Refusal)(nil); errors.As(err, &refusal) {
		refusal.Stands = stands
	}
	if err == nil {
		err = Homeless(dropped, r.Desired, r.Revision, stands)
	}
	if err != nil {
		return loop.Stalled(inventory.ReasonPruneBlocked, err)
	}
	return nil
}
