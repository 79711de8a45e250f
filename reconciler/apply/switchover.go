package apply

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
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
	// pruned is what finish deleted, before health is assessed.
	pruned []inventory.Entry
	// done says that other loops have seen all of the revision, so that the switch can end.
	done bool
}

// switcher makes other loops see revisions as a whole: see docs/design/0009.
type switcher struct {
	switches switchover.Switches // nil: other loops see each object as it is written
	own      kustomizations.Store
	applier  *applier.Applier
	actors   *actors.Actors
	heritage *heritage
	clock    clock.PassiveClock
}

// begin records new objects as owned before they are written, so that a crash in between does not leave
// any that nobody would ever delete. In the same write it announces a switch, unless definitions have to
// be created first: clusters would wait for these, which may take long.
func (w switcher) begin(ctx context.Context, s *state) (loop.Next, error) {
	s.switched.resumed = apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, switching.Condition)
	s.switched.needed = w.switches != nil && (s.switched.resumed || switchover.Needed(s.plan.Changes, s.leaving.Deleted))
	announces := s.switched.needed && !s.plan.Defines()
	if len(s.diff.Added) == 0 && !announces {
		return loop.Next{}, nil
	}
	return loop.Next{}, w.announce(ctx, s, announces)
}

// announce writes into the status what is about to be applied. If it is a switch, the loops that propagate objects
// leave these as they are from then on.
func (w switcher) announce(ctx context.Context, s *state, isSwitch bool) error {
	after := s.ks.DeepCopy()
	if len(s.diff.Added) > 0 {
		after.Status = applyingStatus(s, w.clock.Now())
	}
	if s.switched.announced = isSwitch; isSwitch {
		w.switches.Begin(s.owner)
		c := kustomizations.Conditions{List: &after.Status.Conditions, Generation: s.ks.Generation, Now: metav1.NewTime(w.clock.Now())}
		c.Set(switching.Condition, metav1.ConditionTrue, meta.ProgressingReason, fmt.Sprintf(
			"Clusters keep what they have until all of revision %s (%s) is written", s.source.revision, s.digest))
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
// the switch, and Kustomizations that hand objects over. Then it waits until the watches of other loops have seen
// everything, also without a switch if a policy or override was written, as health depends on these. A switch ends in
// the status: here if more has to be deleted, which must come after it, and else with the outcome of the run.
func (w switcher) finish(ctx context.Context, s *state) (loop.Next, error) {
	s.writes = whole
	var err error
	if s.switched.pruned, s.leaving.Deleted, err = w.first(ctx, s); err != nil {
		return loop.Next{}, err
	}
	if err := w.applier.Prune(ctx, s.owner, s.actor, s.switched.pruned, s.seen); err != nil {
		return loop.Next{}, loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), w.actors.Explained(ctx, s.actor, err))
	}
	if !s.switched.needed {
		w.end(ctx, s.owner, nil)
	}
	if w.switches == nil || !s.switched.needed && !switchover.Rule(s.plan.Changes, s.switched.pruned) {
		return loop.Next{}, nil
	}
	if err := switchover.Await(ctx, w.switches, switchover.Written(s.plan.Changes, s.switched.pruned, s.seen, s.switched.resumed)); err != nil {
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

// first splits what is to be deleted into what is deleted before health is assessed, and the rest.
func (w switcher) first(ctx context.Context, s *state) (first, rest []inventory.Entry, err error) {
	first, others := switchover.Rules(s.leaving.Deleted)
	for _, e := range others {
		hands, err := w.heritage.handsOver(ctx, s, e)
		if err != nil {
			return nil, nil, err
		}
		if hands {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return first, rest, nil
}

// end ends a switch of a Kustomization, if there is one. leaving is what left it and is not deleted yet.
func (w switcher) end(ctx context.Context, owner client.ObjectKey, leaving []inventory.Entry) {
	if w.switches != nil {
		w.switches.End(ctx, owner, leaving)
	}
}
