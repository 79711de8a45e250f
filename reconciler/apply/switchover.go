package apply

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/exchange"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/switching"
)

// switched is how far a run has come with a switch: a revision whose objects other loops must see as a whole.
type switched struct {
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
	switches  switchover.Switches // nil: each counts as it is written
	exchanges *exchange.Exchanges
	own       kustomizations.Store
	applier   *applier.Applier
	actors    *actors.Actors
	heritage  *heritage
	clock     clock.PassiveClock
}

// begin records new objects as owned before they are written, so that a crash in between does not leave
// any that nobody would ever delete. In the same write it announces a switch, unless definitions have to
// be created first: clusters would wait for these, which may take long.
func (w switcher) begin(ctx context.Context, s *state) (loop.Next, error) {
	if err := w.need(ctx, s); err != nil {
		return loop.Next{}, err
	}
	announces := s.switched.needed && !s.plan.Defines()
	if len(s.diff.Added) == 0 && !announces {
		return loop.Next{}, nil
	}
	return loop.Next{}, w.announce(ctx, s, announces)
}

// need finds out whether a revision is switched: as its parts depend on each other, or what it moves on what another
// Kustomization writes.
func (w switcher) need(ctx context.Context, s *state) error {
	s.switched.resumed = apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, switching.Condition)
	if w.switches == nil || s.diff.at.Outside() {
		return nil
	}
	var err error
	s.switched.with, err = w.exchanges.With(ctx, exchange.Query{
		Of: s.ks, At: s.artifact(), Changes: s.plan.Changes, Leaving: s.leaving.Leaving, Removed: s.diff.Removed, Seen: s.seen,
	})
	s.switched.needed = s.switched.resumed || len(s.switched.with) > 0 || switchover.Needed(s.plan.Changes, s.leaving.Deleted)
	return err
}

// announce says what is about to be written. Whoever carries objects leaves them as they stand from then
// on, if it is a switch.
func (w switcher) announce(ctx context.Context, s *state, isSwitch bool) error {
	after := s.ks.DeepCopy()
	if len(s.diff.Added) > 0 {
		after.Status = applyingStatus(s, w.clock.Now())
	}
	if s.switched.announced = isSwitch; isSwitch {
		w.switches.Begin(s.owner)
		ending, err := w.exchanges.Ending(ctx, s.switched.with)
		if err != nil {
			return err
		}
		for _, key := range ending {
			w.switches.Join(key, []client.ObjectKey{s.owner})
		}
		c := kustomizations.Conditions{List: &after.Status.Conditions, Generation: s.ks.Generation, Now: metav1.NewTime(w.clock.Now())}
		reason, text := exchange.Announce(s.ks, s.plan.Changes, exchange.Text(s.source.revision, s.digest, s.switched.with, s.sees()))
		c.Set(switching.Condition, metav1.ConditionTrue, reason, text)
	}
	if err := w.own.Publish(ctx, s.ks, after); err != nil {
		return err
	}
	s.ks = after
	return nil
}

// beforeRules returns the function that the applier calls once all definitions are served, before it writes policies.
// It announces a switch that begin has put off.
func (w switcher) beforeRules(s *state) func(context.Context) error {
	return func(ctx context.Context) error {
		s.writes = part
		if !s.switched.needed || s.switched.announced {
			return nil
		}
		return w.announce(ctx, s, true)
	}
}

// finish deletes what left the revision and must not wait for health: policies and overrides, which are part of
// the switch, once others that are switched with this one have written their part, too, and Kustomizations that hand objects over.
// Then it waits until the watches of other loops have seen everything, also without a switch if a policy or override was written, as health depends on these. A switch ends in
// the status: here if more has to be deleted, which must come after it, and else with the outcome of the run.
func (w switcher) finish(ctx context.Context, s *state) (loop.Next, error) {
	s.writes = whole
	var err error
	if s.switched.pruned, s.leaving.Deleted, err = switchover.First(s.leaving.Deleted, func(e inventory.Entry) (bool, error) { return w.heritage.handsOver(ctx, s, e) }); err != nil {
		return loop.Next{}, err
	}
	now, last := switchover.Apart(s.switched.pruned, len(s.switched.with) > 0)
	if err := w.prune(ctx, s, now); err != nil {
		return loop.Next{}, err
	}
	if !s.switched.needed {
		w.end(ctx, s.owner, nil)
	}
	if w.switches == nil || !s.switched.needed && !switchover.Rule(s.plan.Changes, s.switched.pruned) {
		return loop.Next{}, nil
	}
	if err := switchover.Await(ctx, w.switches, switchover.Written(s.plan.Changes, now, s.seen, s.switched.resumed)); err != nil {
		return loop.Next{}, err
	}
	if err := w.together(ctx, s, last); err != nil {
		return loop.Next{}, err
	}
	if s.switched.done = s.switched.needed; !s.switched.needed || len(s.leaving.Deleted) == 0 {
		return loop.Next{}, nil
	}
	after := s.ks.DeepCopy()
	apimeta.RemoveStatusCondition(&after.Status.Conditions, switching.Condition)
	inventory.RecordLeaving(&after.Status, inventory.IDsOf(s.leaving.all()), inventory.IDsOf(s.leaving.Staying()), true)
	if err := w.own.Publish(ctx, s.ks, after); err != nil {
		return loop.Next{}, err
	}
	s.ks = after
	w.end(ctx, s.owner, s.leaving.all())
	return loop.Next{}, nil
}

// prune deletes what left the revision, as far as others are not asked about it.
func (w switcher) prune(ctx context.Context, s *state, entries []inventory.Entry) error {
	if err := w.applier.Prune(ctx, s.owner, s.actor, entries, s.seen); err != nil {
		return loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), w.actors.Explained(ctx, s.actor, err))
	}
	return nil
}

// together has a switch end no sooner than those of Kustomizations between which and this one the revision moves objects. It deletes what
// goes last once they have written.
func (w switcher) together(ctx context.Context, s *state, last []inventory.Entry) error {
	if len(s.switched.with) == 0 {
		return nil
	}
	awaiting(s.last, s.switched.with)
	written, err := w.exchanges.Await(ctx, exchange.Wait{Of: s.ks, At: s.artifact(), With: s.switched.with, Leaving: s.leaving.Leaving, Within: s.sees()})
	if s.switched.waits = err != nil; err != nil {
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
		w.exchanges.Forget(owner)
		w.switches.End(ctx, owner, leaving)
	}
}
