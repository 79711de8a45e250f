package apply

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/switching"
)

// keeper looks after what stands while another revision is not applied.
type keeper struct {
	lastgood.Keeper
	actors *actors.Actors
	clock  clock.PassiveClock
}

// keep has what a revision left be as it was, where the revision is refused before anything of it is written:
// what others change or delete comes back, when that is looked for. It returns the refusal, which also says why
// that cannot be.
func (k keeper) keep(ctx context.Context, s *state, refusal error) error {
	record := lastgood.In(s.ks.Status)
	isSwitched := apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, switching.Condition)
	if refusal == nil || !s.drift || s.settled || s.writes != none || isSwitched || !record.Whole() {
		return refusal
	}
	if record.Artifact == s.source.digest && s.tried {
		return refusal // it is this one that cannot be applied any more
	}
	outcome := loop.As(refusal, reasonFailed)
	restored, err := k.Restore(ctx, lastgood.Request{
		Build:  builder.Input{Kustomization: s.ks, As: s.actor, Retry: intervals.Retry(s.ks), Reveal: s.last.secrets.Keep},
		Record: record, As: s.actor, Gone: s.last.gone(s, outcome.Reason),
	})
	s.last.keeps(s, restored.Objects, k.clock.Now())
	var did applier.ChangeSet
	did.Add(restored.Changes, nil)
	s.kept, s.taken = did.String(), restored.Taken
	if err == nil {
		return refusal
	}
	return &loop.Error{Reason: outcome.Reason, Class: outcome.Class, After: outcome.After, Err: fmt.Errorf("%w; and what stays meanwhile cannot be kept as it was: %w", outcome.Err, k.actors.Explained(ctx, s.actor, err))}
}
