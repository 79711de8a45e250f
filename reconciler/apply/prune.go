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
	"github.com/flotilla-io/flotilla/reconciler/apply/held"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/pruning"
	"github.com/flotilla-io/flotilla/reconciler/apply/remains"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// departures decides when objects that left a revision are deleted.
type departures struct {
	assessor Assessor
	applier  *applier.Applier
	actors   *actors.Actors
	pruner   pruning.Pruner
	remains  remains.Finder
}

// depart finds out, for a revision that is applied already, what left it and has yet to be deleted.
func (d departures) depart(ctx context.Context, s *state) (loop.Next, error) {
	// Without desired, recall trusted the status after a restart: nothing was left to delete then.
	if !s.current || len(s.desired) == 0 {
		return loop.Next{}, nil
	}
	owned, err := inventory.Here(s.ks)
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
	for _, e := range left {
		if s.seen[e.ID] == nil { // another Kustomization has taken it meanwhile, or it is gone
			s.taken = append(s.taken, e.ID)
		}
	}
	return loop.Next{}, nil
}

// replace finds out, if something left the revision, in which clusters all of the revision is applied or, with
// spec.wait, healthy. With spec.wait the phase assess has found that out, except for a revision that is ready already.
func (d departures) replace(ctx context.Context, s *state) (loop.Next, error) {
	known := s.ks.Spec.Wait && !(s.current && readyAt(s))
	if known || len(s.leaving.Deleted) == 0 {
		return loop.Next{}, nil
	}
	observed, err := held.Observe(ctx, d.applier, s.owner, s.desired, s.desired, nil)
	if err != nil {
		return loop.Next{}, err
	}
	found, err := d.assessor.Assess(ctx, health.Request{Entries: s.desired, Observed: observed, As: s.actor, Checks: s.ks.Spec.HealthCheckExprs, Applied: !s.ks.Spec.Wait,
		Runs: slices.ContainsFunc(s.leaving.Deleted, func(e inventory.Entry) bool { return inventory.IsWorkload(e.ID) })})
	if err != nil {
		return loop.Next{}, err
	}
	s.leaving.replaced = s.leaving.replaced.And(found.Replaced)
	pending, _, failed := health.Split(found.Verdicts)
	s.leaving.unreplaced = len(pending)+len(failed) > 0
	if lost := slices.IndexFunc(pending, health.Verdict.RunsNowhere); lost >= 0 {
		s.leaving.nowhere = pending[lost].String()
	}
	return loop.Next{}, nil
}

// prune deletes what left the revision once its replacement is applied everywhere. Until then it is removed only from
// the clusters that have the replacement; of silent clusters that is not known. What people have allowed to be deleted
// by its name is deleted at once.
func (d departures) prune(ctx context.Context, s *state) (loop.Next, error) {
	doomed := s.leaving.Deleted
	if len(doomed) == 0 {
		return loop.Next{}, nil
	}
	kept, err := d.kept(ctx, s)
	if err != nil {
		return loop.Next{}, err
	}
	if s.current && len(kept) < len(doomed) {
		return s.again(), nil
	}
	s.keep(kept)
	next, err := d.thin(ctx, s)
	if err == nil {
		err = d.applier.Prune(ctx, s.owner, s.actor, s.leaving.Deleted, s.seen)
	}
	if err != nil {
		s.keep(doomed) // what the account may not delete stays as it is in all clusters
		return loop.Next{}, loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), d.actors.Explained(ctx, s.actor, err))
	}
	return next, nil
}

// kept returns what left the revision and has to stay for now.
func (d departures) kept(ctx context.Context, s *state) ([]inventory.Entry, error) {
	may := s.allowance(s.source.revision, nil)
	stays := slices.DeleteFunc(slices.Clone(s.leaving.Deleted), func(e inventory.Entry) bool { return !s.current && may.Names(e.ID) })
	if !s.waiting.over() || s.leaving.unreplaced {
		return stays, nil
	}
	return d.pruner.Remaining(ctx, stays, s.leaving.replaced)
}

// thin removes kept objects from the clusters in which they are replaced, if the account may delete them. It does so
// only once the status lists them as leaving: else bring, or the loops that propagate them, would restore them.
func (d departures) thin(ctx context.Context, s *state) (loop.Next, error) {
	due, err := d.pruner.Due(ctx, s.leaving.kept, s.leaving.replaced)
	if err != nil || len(s.leaving.kept) == 0 {
		return loop.Next{}, err
	}
	next := loop.Next{After: silentPoll}
	if latest := s.ks.Status.History.Latest(); s.leaving.unreplaced && latest != nil { // not all of it changes a binding, which starts a run
		next.After = min(silentPoll, max(healthPoll, s.now.Sub(latest.FirstReconciled.Time)))
	}
	leaving := inventory.Leaving(s.ks.Status)
	reported := slices.DeleteFunc(slices.Clone(due), func(e inventory.Entry) bool { return !slices.Contains(leaving, e.ID) })
	if len(reported) < len(due) && !s.current {
		next.After = minimumPause
	}
	if len(reported) == 0 {
		return next, nil
	}
	if err := d.applier.Prune(ctx, s.owner, s.actor, reported, s.seen, client.DryRunAll); err != nil {
		return loop.Next{}, err
	}
	return next, d.pruner.Prune(ctx, reported, s.leaving.replaced)
}

// keep moves entries from what is deleted to what is kept until its replacement is applied.
func (s *state) keep(entries []inventory.Entry) {
	s.leaving.kept = entries
	s.leaving.Deleted = inventory.Compare(s.leaving.Deleted, entries).Removed
	if len(entries) > 0 && s.waiting.text != "" {
		s.waiting.text += "; what left it stays until then: " + inventory.First(inventory.IDsOf(entries), namedUnhealthy)
	}
}

// again makes the next run a full one, as an object has to be deleted and only a full run deletes.
func (s *state) again() loop.Next {
	s.keep(s.leaving.Deleted)
	if s.last.again(); s.waiting.text == "" && !readyAt(s) {
		s.waiting = wait{text: "Health checks passed for revision " + s.source.revision + "; removing what left it"}
	}
	return loop.Next{After: minimumPause}
}

// bring lets objects that are in the revision again return to all their clusters.
func (d departures) bring(ctx context.Context, s *state) (loop.Next, error) {
	if len(inventory.Leaving(s.ks.Status)) == 0 { // nothing had left it
		return loop.Next{}, nil
	}
	return loop.Next{}, d.pruner.Return(ctx, inventory.IDsOf(s.desired))
}
