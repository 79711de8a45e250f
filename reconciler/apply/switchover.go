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

// switched is how far a run is with a revision whose parts are to count at the same time.
type switched struct {
	// needed says that the parts depend on each other; resumed that an earlier run began; announced
	// that this one has reported it.
	needed, resumed, announced bool
	// pruned is what went before anything was waited for.
	pruned []inventory.Entry
	// done says that all of it counts from now on.
	done bool
}

// switcher has the parts of revisions count at the same time.
type switcher struct {
	switches switchover.Switches // nil: each counts as it is written
	own      kustomizations.Store
	applier  *applier.Applier
	actors   *actors.Actors
	heritage *heritage
	clock    clock.PassiveClock
}

// begin records new objects as owned before they are written, so that a crash in between does not leave
// any that nobody would ever delete. In the same write it announces a switch, unless what the objects
// need to exist is made first, which may take long.
func (w switcher) begin(ctx context.Context, s *state) (loop.Next, error) {
	s.switched.resumed = apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, switching.Condition)
	s.switched.needed = w.switches != nil && (s.switched.resumed || switchover.Needed(s.plan.Changes, s.leaving.Deleted))
	announces := s.switched.needed && !s.plan.Defines()
	if len(s.diff.Added) == 0 && !announces {
		return loop.Next{}, nil
	}
	return loop.Next{}, w.announce(ctx, s, announces)
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

// beforeRules is called when all exists that the objects of a revision need: a switch that waited for that is
// announced then.
func (w switcher) beforeRules(s *state) func(context.Context) error {
	return func(ctx context.Context) error {
		s.writes = part
		if !s.switched.needed || s.switched.announced {
			return nil
		}
		return w.announce(ctx, s, true)
	}
}

// finish removes what left the revision and must not be waited for: the policies and overrides, which
// count with all of it, and Kustomizations that hand over. All of a switch counts once it is seen; the
// status says so: at once where more is to be removed, else with the outcome of the run. Any policy or override
// is seen before health is looked at.
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

// first divides what is to be deleted into what goes before health is looked at, and the rest.
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

// end says that a Kustomization is not being switched here, and what left it and is not gone yet.
func (w switcher) end(ctx context.Context, owner client.ObjectKey, leaving []inventory.Entry) {
	if w.switches != nil {
		w.switches.End(ctx, owner, leaving)
	}
}
