package apply

import (
	"context"
	"slices"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/notices"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/apply/termination"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// debtor deletes what left the last good revision while a newer one is refused.
type debtor struct {
	pruner
	successors *successors
}

// owed is what a run has found out about what left the last good revision.
type owed struct {
	// deleted says what was deleted; empty for nothing. awaits are the objects that the rest waits for.
	deleted string
	awaits  []inventory.ID
}

// settle deletes what the last good revision was allowed to drop, once, and first where, that is replaced: as it would if no newer revision
// had come. The refused one does not count, also where it holds such an object again: nobody can tell what one would hold that cannot be
// built. What others of the source want or may want, at its artifact, stays.
func (d debtor) settle(ctx context.Context, s *state, record lastgood.Record) error {
	o, err := d.observe(ctx, s, record)
	if err != nil || o == nil {
		return err
	}
	if o.stale.Handover, err = d.successors.splitStale(ctx, o, s.artifact(), applier.Prunable(o.diff.Removed, o.seen)); err != nil {
		return err
	}
	if len(o.stale.Deleted) > 0 {
		if err := d.replace(ctx, o); err != nil {
			return err
		}
	}
	for _, e := range o.diff.Removed {
		if o.seen[e.ID] == nil { // another Kustomization has taken it meanwhile, or it is gone
			s.taken = append(s.taken, e.ID)
		}
	}
	if len(o.stale.retained) > 0 {
		s.owed.awaits = inventory.IDsOf(o.awaited(false))
	}
	if len(o.stale.Deleted) == 0 {
		return nil
	}
	ids := inventory.IDsOf(o.stale.Deleted)
	s.taken = append(s.taken, ids...)
	s.owed.deleted = inventory.First(ids, notices.MostNamed)
	s.stale.terminating, err = d.remains.Find(ctx, termination.Query{
		Of: s.ks, Owned: slices.Concat(o.desired, o.stale.Staying(), o.stale.retained), Removed: o.stale.Deleted, Seen: o.seen, Beneath: o.stale.descendants,
	})
	return err
}

// observe returns a run of the last good revision, with what left it and may go: policies and overrides are not among that, as they do not wait
// for what replaces them. It returns nil if nothing may go, or it is not known of what that revision consists.
func (d debtor) observe(ctx context.Context, s *state, record lastgood.Record) (*state, error) {
	let := inventory.LetGo(s.ks.Status)
	if len(let) == 0 || !s.ks.Spec.Prune {
		return nil, nil
	}
	owned, err := inventory.Here(s.ks)
	if err != nil {
		return nil, err
	}
	o := &state{ks: s.ks, owner: s.owner, now: s.now, last: s.last, actor: s.actor, source: s.source, desired: appliedObjects(s.last, s.ks.Generation)}
	o.source.revision, o.source.digest, o.source.allows = record.Revision, record.Artifact, ""
	_, left := switchover.Rules(inventory.Compare(owned, o.desired).Removed)
	o.diff.Removed = slices.DeleteFunc(left, func(e inventory.Entry) bool { return !slices.Contains(let, e.ID) })
	if len(o.desired) == 0 || len(o.diff.Removed) == 0 {
		return nil, nil
	}
	o.seen, err = d.applier.Observe(ctx, o.owner, o.diff.Removed)
	return o, err
}

// replace deletes what is replaced, everywhere or in some clusters, and retains the rest.
func (d debtor) replace(ctx context.Context, o *state) error {
	err := d.assess(ctx, o, !health.Checked(o.ks))
	if err != nil {
		return err
	}
	kept, err := d.retained(ctx, o)
	if err != nil {
		return err
	}
	o.retain(kept)
	if _, err := d.pruneClusters(ctx, o); err != nil {
		return err
	}
	if o.stale.descendants, err = cascadingdeletion.Descendants(ctx, d.successors.live, o.owner, o.stale.Deleted); err != nil {
		return err
	}
	for _, e := range o.stale.Deleted {
		if _, err := d.successors.handsOver(ctx, o, e); err != nil {
			return err
		}
	}
	return d.applier.Prune(ctx, o.owner, o.actor, slices.Clone(o.stale.Deleted), o.seen)
}

// appliedObjects returns the objects that were applied last as a whole; none if it is not known that a spec of this generation asks
// for the same.
func appliedObjects(m *lastApplied, generation int64) []inventory.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.desiredBy != generation {
		return nil
	}
	return slices.Clone(m.desired)
}
