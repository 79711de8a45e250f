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
	"github.com/flotilla-io/flotilla/reconciler/apply/remains"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// departures decides when what left revisions goes.
type departures struct {
	assessor Assessor
	applier  *applier.Applier
	actors   *actors.Actors
	pruner   pruning.Pruner
	remains  remains.Finder
}

// depart finds out what has left a revision that stands, and has yet to go.
func (d departures) depart(ctx context.Context, s *state) (loop.Next, error) {
	if !s.current || len(s.desired) == 0 { // it was ready before a restart, and so had removed all
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
	for _, e := range left {
		if s.seen[e.ID] == nil { // another Kustomization has taken it meanwhile, or it is gone
			s.taken = append(s.taken, e.ID)
		}
	}
	return loop.Next{}, nil
}

// replace finds out where all of a revision stands, if something has left it: is applied, or, with wait, is healthy,
// which is known already of one that is not ready.
func (d departures) replace(ctx context.Context, s *state) (loop.Next, error) {
	known := s.ks.Spec.Wait && !(s.current && readyAt(s))
	if known || len(s.leaving.Deleted) == 0 {
		return loop.Next{}, nil
	}
	observed, err := observeOwn(ctx, d.applier, s, s.desired)
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

// prune deletes what left the revision, once what replaces it stands; before, it goes from the clusters in which that
// is so. Of clusters of which nothing is heard it is not known. What people let go by its name, goes at once.
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
		s.keep(doomed) // as it stands: what may not be deleted goes from no cluster, and comes back to none
		return loop.Next{}, loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), d.actors.Explained(ctx, s.actor, err))
	}
	return next, nil
}

// kept returns what has to stay for now, of what left a revision.
func (d departures) kept(ctx context.Context, s *state) ([]inventory.Entry, error) {
	may := s.allowance(s.source.revision, nil)
	stays := slices.DeleteFunc(slices.Clone(s.leaving.Deleted), func(e inventory.Entry) bool { return !s.current && may.Names(e.ID) })
	if !s.waiting.over() || s.leaving.unreplaced {
		return stays, nil
	}
	return d.pruner.Remaining(ctx, stays, s.leaving.replaced)
}

// thin takes what is kept out of the clusters in which it is replaced, if whoever acts may delete it: once the status
// says that it is leaving, or those who carry it would have it come back.
func (d departures) thin(ctx context.Context, s *state) (loop.Next, error) {
	due, err := d.pruner.Due(ctx, s.leaving.kept, s.leaving.replaced)
	if err != nil || len(s.leaving.kept) == 0 {
		return loop.Next{}, err
	}
	next := loop.Next{After: silentPoll} // bindings report what changes in clusters
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
	if s.last.again(); s.waiting.text == "" && !readyAt(s) {
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
