package apply

import (
	"context"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// switchProgress is how far a run has come with a switch: a revision whose objects other loops must see as a whole.
type switchProgress struct {
	// needed says that the objects depend on each other, so that a switch is needed; resumed that an earlier run
	// began it; announced that this run has announced it.
	needed, resumed, announced bool
	// with are the Kustomizations between which and this one the revision moves objects, and waits says that all is
	// written, and one of them is waited for.
	with  []client.ObjectKey
	waits bool
	// pruned is what went before anything was waited for.
	pruned []inventory.Entry
	// done says that other loops have seen all of the revision, so that the switch can end.
	done bool
}

// switcher makes other loops see revisions as a whole: see docs/design/0009.
type switcher struct {
	switches   switchover.Switches // nil: each counts as it is written
	groups     *switchover.Groups
	store      kustomizations.Store
	applier    *applier.Applier
	actors     *impersonation.Actors
	successors *successors
	clock      clock.PassiveClock
}

// recordInventory records new objects as owned before they are written, so that a crash in between does not leave
// any that nobody would ever delete. In the same write it announces a switch: of no more than the definitions, if these have to be
// written first, as clusters would wait for them, which may take long.
func (w switcher) recordInventory(ctx context.Context, s *state) (loop.Next, error) {
	if err := w.decide(ctx, s); err != nil {
		return loop.Next{}, err
	}
	of := revisiongate.None
	if s.switchover.needed {
		of = switchover.Begins(s.plan, s.stale.Deleted, len(s.switchover.with) > 0, s.ks.Status.Conditions)
	}
	if len(s.diff.Added) == 0 && of == revisiongate.None {
		return loop.Next{}, nil
	}
	return loop.Next{}, w.announce(ctx, s, of)
}

// decide finds out whether a revision is switched: as its parts depend on each other, or what it moves on what another
// Kustomization writes.
func (w switcher) decide(ctx context.Context, s *state) error {
	s.switchover.resumed = apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, revisiongate.Condition)
	if w.switches == nil || s.diff.at.Remote() {
		return nil
	}
	var err error
	s.switchover.with, err = w.groups.With(ctx, switchover.Query{
		Of: s.ks, At: s.artifact(), Changes: s.plan.Changes, Leaving: s.stale.Handover, Removed: s.diff.Removed, Seen: s.seen,
	})
	s.switchover.needed = s.switchover.resumed || len(s.switchover.with) > 0 || switchover.Needed(s.plan.Changes, s.stale.Deleted)
	return err
}

// announce says what is about to be written. Whoever carries objects leaves them as they stand from then
// on, as far as it is a switch.
func (w switcher) announce(ctx context.Context, s *state, of revisiongate.Extent) error {
	after := s.ks.DeepCopy()
	if len(s.diff.Added) > 0 {
		after.Status = applyingStatus(s, w.clock.Now())
	}
	if s.switchover.announced = of == revisiongate.All; of != revisiongate.None {
		w.switches.Begin(s.owner, of)
		ending, err := w.groups.Ending(ctx, s.switchover.with)
		if err != nil {
			return err
		}
		for _, key := range ending {
			w.switches.Join(key, []client.ObjectKey{s.owner})
		}
		c := kustomizations.Conditions{List: &after.Status.Conditions, Generation: s.ks.Generation, Now: metav1.NewTime(w.clock.Now())}
		reason, text := switchover.Announce(s.ks, s.plan.Changes, of, switchover.Text(s.source.revision, s.digest, s.switchover.with, s.actor.Sees(s.ks.Namespace)))
		c.Set(revisiongate.Condition, metav1.ConditionTrue, reason, text)
	}
	if err := w.store.PatchStatus(ctx, s.ks, after); err != nil {
		return err
	}
	s.ks = after
	return nil
}

// beforePolicies returns the function that the applier calls once all definitions are served, before it writes policies.
// It announces a switch that recordInventory has put off.
func (w switcher) beforePolicies(s *state) func(context.Context) error {
	return func(ctx context.Context) error {
		s.writes = part
		if !s.switchover.needed || s.switchover.announced {
			return nil
		}
		return w.announce(ctx, s, revisiongate.All)
	}
}

// complete deletes what left the revision and must not wait for health: policies and overrides, which are part of
// the switch, once others that are switched with this one have written their part, too, and Kustomizations that hand objects over, or
// hold policies and overrides that count until then.
// Then it waits until the watches of other loops have seen everything, also without a switch if a policy or override was written, as health depends on these. A switch ends in
// the status: here if more has to be deleted, which must come after it, and else with the outcome of the run.
func (w switcher) complete(ctx context.Context, s *state) (loop.Next, error) {
	s.writes = whole
	var err error
	if s.switchover.pruned, s.stale.Deleted, err = switchover.First(s.stale.Deleted, func(e inventory.Entry) (bool, error) { return w.goesFirst(ctx, s, e) }); err != nil {
		return loop.Next{}, err
	}
	now, last := switchover.Apart(s.switchover.pruned, len(s.switchover.with) > 0)
	if err := w.prune(ctx, s, now); err != nil {
		return loop.Next{}, err
	}
	if !s.switchover.needed {
		w.end(ctx, s.owner, nil)
	}
	if w.switches == nil || !s.switchover.needed && !switchover.Rule(s.plan.Changes, s.switchover.pruned) {
		return loop.Next{}, nil
	}
	if err := switchover.Await(ctx, w.switches, switchover.Written(s.plan.Changes, now, s.seen, s.switchover.resumed)); err != nil {
		return loop.Next{}, err
	}
	if err := w.awaitGroup(ctx, s, last); err != nil {
		return loop.Next{}, err
	}
	if s.switchover.done = s.switchover.needed; !s.switchover.needed || len(s.stale.Deleted) == 0 {
		return loop.Next{}, nil
	}
	after := s.ks.DeepCopy()
	apimeta.RemoveStatusCondition(&after.Status.Conditions, revisiongate.Condition)
	inventory.RecordLeaving(&after.Status, inventory.IDsOf(s.stale.all()), inventory.IDsOf(s.stale.Staying()), true)
	if err := w.store.PatchStatus(ctx, s.ks, after); err != nil {
		return loop.Next{}, err
	}
	s.ks = after
	w.end(ctx, s.owner, s.stale.all())
	return loop.Next{}, nil
}

// goesFirst reports whether an entry is a Kustomization that does not wait for health: others take something of it, or its policies and
// overrides belong to what is switched, here or in others, and would count for that as well.
func (w switcher) goesFirst(ctx context.Context, s *state, e inventory.Entry) (bool, error) {
	hands, err := w.successors.handsOver(ctx, s, e)
	keys := siblings.KeysIn([]inventory.Entry{e})
	if err != nil || hands || len(keys) == 0 || w.switches == nil {
		return hands, err
	}
	if slices.Contains(s.switchover.with, keys[0]) {
		return true, nil
	}
	return switchover.NewRetirements(w.groups, nil).Concern(ctx, keys[0], s.artifact())
}

// prune deletes what left the revision, as far as others are not asked about it.
func (w switcher) prune(ctx context.Context, s *state, entries []inventory.Entry) error {
	if err := w.applier.Prune(ctx, s.owner, s.actor, entries, s.seen); err != nil {
		return loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), w.actors.Explained(ctx, s.actor, err))
	}
	return nil
}

// awaitGroup has a switch end no sooner than those of Kustomizations between which and this one the revision moves objects. It deletes what
// goes last once they have written.
func (w switcher) awaitGroup(ctx context.Context, s *state, last []inventory.Entry) error {
	if len(s.switchover.with) == 0 {
		return nil
	}
	s.last.awaited.SetKustomizations(w.groups.Deciding(ctx, s.switchover.with))
	written, err := w.groups.Await(ctx, switchover.Wait{Of: s.ks, At: s.artifact(), With: s.switchover.with, Leaving: s.stale.Handover, Within: s.actor.Sees(s.ks.Namespace)})
	if s.switchover.waits = err != nil; err != nil {
		return err
	}
	w.switches.Join(s.owner, written)
	if err := w.prune(ctx, s, last); err != nil {
		return err
	}
	return switchover.Await(ctx, w.switches, switchover.Written(nil, last, s.seen, false))
}

// end ends a switch of a Kustomization, if there is one. leaving is what left it and is not deleted yet.
func (w switcher) end(ctx context.Context, owner client.ObjectKey, leaving []inventory.Entry) {
	if w.switches != nil {
		w.groups.Forget(owner)
		w.switches.End(ctx, owner, leaving)
	}
}
