package apply

import (
	"context"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/pruning"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// departures decides when what left revisions goes.
type departures struct {
	assessor Assessor
	applier  *applier.Applier
	actors   *actors.Actors
	pruner   pruning.Pruner
}

// depart finds out what has left a revision that stands, and has yet to go.
func (d departures) depart(ctx context.Context, s *state) (loop.Next, error) {
	if !s.settled || len(s.desired) == 0 { // it was ready before a restart, and so had removed all
		return loop.Next{}, nil
	}
	owned, err := inventory.Read(s.ks.Status.Inventory)
	if err != nil {
		return loop.Next{}, err
	}
	s.leaving.known = true
	left := inventory.Compare(owned, s.desired).Removed
	if len(left) == 0 {
		return loop.Next{}, nil
	}
	if s.seen, err = d.applier.Observe(ctx, s.owner, left); err != nil {
		return loop.Next{}, err
	}
	s.leaving.Deleted = applier.Prunable(left, s.seen)
	return loop.Next{}, nil
}

// replace finds out where all of a revision is applied, if something has left it and health is not waited for.
func (d departures) replace(ctx context.Context, s *state) (loop.Next, error) {
	if s.ks.Spec.Wait || len(s.leaving.Deleted) == 0 {
		return loop.Next{}, nil
	}
	observed, err := observeOwn(ctx, d.applier, s, s.desired)
	if err != nil {
		return loop.Next{}, err
	}
	found, err := d.assessor.Assess(ctx, health.Request{Entries: s.desired, Observed: observed, As: s.actor, Applied: true})
	if err != nil {
		return loop.Next{}, err
	}
	s.leaving.replaced = s.leaving.replaced.And(found.Replaced)
	pending, _, failed := health.Split(found.Verdicts)
	if s.leaving.unreplaced = len(pending)+len(failed) > 0; s.leaving.unreplaced {
		return loop.Next{After: silentPoll}, nil // bindings are heard of
	}
	return loop.Next{}, nil
}

// prune deletes what left the revision, once what replaces it stands everywhere; before, it goes from the clusters
// in which it does. What people let go, goes at once.
func (d departures) prune(ctx context.Context, s *state) (loop.Next, error) {
	doomed, over := s.leaving.Deleted, s.waiting.over() && !s.leaving.unreplaced
	if len(doomed) == 0 {
		return loop.Next{}, nil
	}
	if over && s.settled {
		return s.again(), nil
	}
	if !over {
		may := s.allowance(s.source.revision)
		kept := slices.DeleteFunc(slices.Clone(doomed), func(e inventory.Entry) bool { return !s.settled && may.Lets(e.ID) })
		if err := d.thin(ctx, s, kept); err != nil {
			return loop.Next{}, err
		}
		doomed = inventory.Compare(doomed, kept).Removed
		s.keep(kept)
	}
	if err := d.applier.Prune(ctx, s.owner, s.actor, doomed, s.seen); err != nil {
		return loop.Next{}, d.notPruned(ctx, s, err)
	}
	return loop.Next{}, nil
}

// thin takes what is kept out of the clusters in which all of the revision stands, if whoever acts may delete it.
func (d departures) thin(ctx context.Context, s *state, kept []inventory.Entry) error {
	due, err := d.pruner.Due(ctx, kept, s.leaving.replaced)
	if err != nil || len(due) == 0 {
		return err
	}
	if err := d.applier.Prune(ctx, s.owner, s.actor, due, s.seen, client.DryRunAll); err != nil {
		return d.notPruned(ctx, s, err)
	}
	return d.pruner.Prune(ctx, due, s.leaving.replaced)
}

func (d departures) notPruned(ctx context.Context, s *state, err error) error {
	return loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), d.actors.Explained(ctx, s.actor, err))
}

// keep has entries stay until what replaces them stands.
func (s *state) keep(entries []inventory.Entry) {
	s.leaving.kept = entries
	s.leaving.Deleted = inventory.Compare(s.leaving.Deleted, entries).Removed
	if len(entries) > 0 && s.waiting.text != "" {
		s.waiting.text += "; what left it stays until then: " + inventory.First(inventory.IDsOf(entries), namedUnhealthy)
	}
}

// again has a revision be worked on anew, as it has to remove something.
func (s *state) again() loop.Next {
	s.keep(s.leaving.Deleted)
	s.last.again()
	if !readyAt(s) {
		s.waiting = wait{text: "Health checks passed for revision " + s.source.revision + "; removing what left it"}
	}
	return loop.Next{After: minimumPause}
}

// bring has what is back in a revision go back to all its clusters.
func (d departures) bring(ctx context.Context, s *state) (loop.Next, error) {
	if len(inventory.Leaving(s.ks.Status)) == 0 { // nothing had left it
		return loop.Next{}, nil
	}
	return loop.Next{}, d.pruner.Return(ctx, inventory.IDsOf(s.desired))
}
