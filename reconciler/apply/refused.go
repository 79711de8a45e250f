package apply

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/pending"
	"github.com/flotilla-io/flotilla/reconciler/switching"
)

// keeper looks after what is applied while a newer revision is refused.
type keeper struct {
	lastgood.Keeper
	actors  *actors.Actors
	pending *pending.Refusals
	clock   clock.PassiveClock
}

// keep corrects drift from the last good revision if the new one is refused before anything of it is written
// and a check for drift is due. It returns the refusal, together with why drift could not be corrected, if so.
// Runs between the checks repeat that text, so that the status does not alternate.
func (k keeper) keep(ctx context.Context, s *state, refusal error) error {
	record := lastgood.In(s.ks.Status)
	isSwitched := s.ks.Spec.KubeConfig != nil || apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, switching.Condition)
	again := record.Artifact == s.source.digest && s.tried // the last good revision is the one that is refused now
	if refusal == nil || s.current || s.writes != none || isSwitched || !record.Whole() || again || !lastgood.Verified(s.ks.Status, record, s.source.verify) {
		s.last.unkept = nil
		return refusal
	}
	if s.last.unkeptBy != s.ks.Generation { // the spec has changed: another path may be built
		s.last.unkept = nil
	}
	if !s.drift {
		return lastgood.AndUnkept(refusal, reasonFailed, s.last.unkept)
	}
	restored, err := k.Restore(ctx, lastgood.Request{
		Build:  builder.Input{Kustomization: s.ks, As: s.actor, Retry: intervals.Retry(s.ks), Reveal: s.last.secrets.Keep, Spare: s.last.secrets.Spare},
		Record: record, As: s.actor, Gone: s.last.gone(s, loop.As(refusal, reasonFailed).Reason),
	})
	s.last.keeps(s, restored.Objects, k.clock.Now())
	var did applier.ChangeSet
	did.Add(restored.Changes, nil)
	s.kept, s.taken = did.String(), restored.Taken
	if s.last.unkept = nil; err != nil {
		s.last.unkept, s.last.unkeptBy = k.actors.Explained(ctx, s.actor, err), s.ks.Generation
	}
	return lastgood.AndUnkept(refusal, reasonFailed, s.last.unkept)
}

// judge returns the outcome to report. For a refusal whose reason others may yet remove, that is a wait for them.
func (k keeper) judge(ctx context.Context, s *state, refusal error) error {
	if s.writes != none || s.source.revision == "" {
		return refusal
	}
	judged, mayPass := k.pending.Judge(ctx, pending.Refusal{Of: s.ks, Revision: s.source.revision, Allowed: s.allowance(s.source.revision, nil), Err: refusal, Now: s.now})
	if mayPass {
		s.plan = applier.Plan{} // none of it was carried out, so it must not be reported as changes
		s.last.waitsForSiblings(s.source.Source, true)
	}
	return judged
}
