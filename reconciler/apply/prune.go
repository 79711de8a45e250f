package apply

import (
	"context"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/clusterprune"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/observation"
	"github.com/flotilla-io/flotilla/reconciler/apply/termination"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// pruner decides when objects that left a revision are deleted.
type pruner struct {
	assessor Assessor
	applier  *applier.Applier
	actors   *impersonation.Actors
	clusters clusterprune.Pruner
	remains  termination.Finder
}

// findPendingPrune finds out, for a revision that is applied already, what left it and has yet to be deleted.
func (p pruner) findPendingPrune(ctx context.Context, s *state) (loop.Next, error) {
	// Without desired, load trusted the status after a restart: nothing was left to delete then.
	if !s.current || len(s.desired) == 0 {
		return loop.Next{}, nil
	}
	owned, err := inventory.Here(s.ks)
	if err != nil {
		return loop.Next{}, err
	}
	s.stale.known = true
	left := inventory.Compare(owned, s.desired).Removed
	if len(left) == 0 {
		return loop.Next{}, nil
	}
	if s.seen, err = p.applier.Observe(ctx, s.owner, left); err != nil {
		return loop.Next{}, err
	}
	s.stale.Deleted = applier.Prunable(left, s.seen)
	for _, e := range left {
		if s.seen[e.ID] == nil { // another Kustomization has taken it meanwhile, or it is gone
			s.taken = append(s.taken, e.ID)
		}
	}
	return loop.Next{}, nil
}

// assessReplacement finds out, if something left the revision, in which clusters all of the revision is applied or, with
// spec.wait, healthy. With spec.wait the phase assessHealth has found that out, except for a revision that is ready already.
func (p pruner) assessReplacement(ctx context.Context, s *state) (loop.Next, error) {
	known := s.ks.Spec.Wait && !(s.current && readyAt(s))
	if known || len(s.stale.Deleted) == 0 {
		return loop.Next{}, nil
	}
	return loop.Next{}, p.assess(ctx, s, !s.ks.Spec.Wait)
}

// assess finds out in which clusters what is applied, or healthy if applied is false, replaces what left it.
func (p pruner) assess(ctx context.Context, s *state, applied bool) error {
	observed, err := observation.Read(ctx, p.applier, s.owner, s.desired, s.desired, nil)
	if err != nil {
		return err
	}
	found, err := p.assessor.Assess(ctx, health.Request{Entries: s.desired, Observed: observed, As: s.actor, Checks: s.ks.Spec.HealthCheckExprs, Applied: applied,
		Runs: slices.ContainsFunc(s.stale.Deleted, func(e inventory.Entry) bool { return inventory.IsWorkload(e.ID) })})
	if err != nil {
		return err
	}
	s.stale.replaced = s.stale.replaced.And(found.Replaced)
	pending, _, failed := health.Split(found.Verdicts)
	s.stale.unreplaced = len(pending)+len(failed) > 0
	if lost := slices.IndexFunc(pending, health.Verdict.RunsNowhere); lost >= 0 {
		s.stale.nowhere = pending[lost].String()
	}
	return nil
}

// prune deletes what left the revision once its replacement is applied everywhere. Until then it is removed only from
// the clusters that have the replacement; of silent clusters that is not known. What people have allowed to be deleted
// by its name is deleted at once.
func (p pruner) prune(ctx context.Context, s *state) (loop.Next, error) {
	doomed := s.stale.Deleted
	if len(doomed) == 0 {
		return loop.Next{}, nil
	}
	kept, err := p.retained(ctx, s)
	if err != nil {
		return loop.Next{}, err
	}
	if s.current && len(kept) < len(doomed) {
		return s.forceFullRun(), nil
	}
	s.retain(kept)
	next, err := p.pruneClusters(ctx, s)
	if err == nil {
		err = p.applier.Prune(ctx, s.owner, s.actor, s.stale.Deleted, s.seen)
	}
	if err != nil {
		s.retain(doomed) // what the account may not delete stays as it is in all clusters
		return loop.Next{}, loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), p.actors.Explained(ctx, s.actor, err))
	}
	return next, nil
}

// retained returns what left the revision and has to stay for now.
func (p pruner) retained(ctx context.Context, s *state) ([]inventory.Entry, error) {
	may := s.allowance(s.source.revision, nil)
	stays := slices.DeleteFunc(slices.Clone(s.stale.Deleted), func(e inventory.Entry) bool { return !s.current && may.Names(e.ID) })
	if !s.waiting.over() || s.stale.unreplaced {
		return stays, nil
	}
	return p.clusters.Remaining(ctx, stays, s.stale.replaced)
}

// pruneClusters removes kept objects from the clusters in which they are replaced, if the account may delete them. It does so
// only once the status lists them as leaving: else restoreToClusters, or the loops that propagate them, would restore them.
func (p pruner) pruneClusters(ctx context.Context, s *state) (loop.Next, error) {
	due, err := p.clusters.Due(ctx, s.stale.retained, s.stale.replaced)
	if err != nil || len(s.stale.retained) == 0 {
		return loop.Next{}, err
	}
	next := loop.Next{After: silentPoll}
	if latest := s.ks.Status.History.Latest(); s.stale.unreplaced && latest != nil { // not all of it changes a binding, which starts a run
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
	if err := p.applier.Prune(ctx, s.owner, s.actor, reported, s.seen, client.DryRunAll); err != nil {
		return loop.Next{}, err
	}
	return next, p.clusters.Prune(ctx, reported, s.stale.replaced)
}

// retain moves entries from what is deleted to what is kept until its replacement is applied.
func (s *state) retain(entries []inventory.Entry) {
	s.stale.retained = entries
	s.stale.Deleted = inventory.Compare(s.stale.Deleted, entries).Removed
	if len(entries) > 0 && s.waiting.text != "" {
		s.waiting.text += "; what left it stays until then: " + inventory.First(inventory.IDsOf(entries), namedUnhealthy)
	}
}

// forceFullRun makes the next run a full one, as an object has to be deleted and only a full run deletes.
func (s *state) forceFullRun() loop.Next {
	s.retain(s.stale.Deleted)
	if s.last.forceFullRun(); s.waiting.text == "" && !readyAt(s) {
		s.waiting = wait{text: "Health checks passed for revision " + s.source.revision + "; removing what left it"}
	}
	return loop.Next{After: minimumPause}
}

// restoreToClusters lets objects that are in the revision again return to all their clusters.
func (p pruner) restoreToClusters(ctx context.Context, s *state) (loop.Next, error) {
	if len(inventory.Leaving(s.ks.Status)) == 0 { // nothing had left it
		return loop.Next{}, nil
	}
	return loop.Next{}, p.clusters.Return(ctx, inventory.IDsOf(s.desired))
}
