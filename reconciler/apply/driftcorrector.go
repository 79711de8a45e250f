package apply

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/transientrefusals"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// driftCorrector looks after what is applied while a newer revision is refused.
type driftCorrector struct {
	lastgood.Restorer
	actors  *impersonation.Actors
	owed    debtor
	pending *transientrefusals.Refusals
	clock   clock.PassiveClock
}

// correct corrects drift from the last good revision if the new one is refused before anything of it is written
// and a check for drift is due, and deletes what that revision still owes. It returns the refusal, together with why drift could not be corrected, if so.
// Runs between the checks repeat that text, so that the status does not alternate.
func (c driftCorrector) correct(ctx context.Context, s *state, refusal error) error {
	record := lastgood.In(s.ks.Status)
	isSwitched := s.ks.Spec.KubeConfig != nil || revisiongate.HoldsAll(s.ks.Status.Conditions)
	again := record.Artifact == s.source.digest && s.tried // the last good revision is the one that is refused now
	if refusal == nil || s.current || s.writes != none || isSwitched || !record.Whole() || again || !lastgood.Verified(s.ks.Status, record, s.source.verify) {
		s.last.unkept = nil
		return refusal
	}
	if s.last.unkeptBy != s.ks.Generation { // the spec has changed: another path may be built
		s.last.unkept = nil
	}
	if s.drift {
		c.restore(ctx, s, record, refusal)
	}
	refusal = lastgood.AndUnkept(refusal, reasonFailed, s.last.unkept)
	if err := c.owed.settle(ctx, s, record); err != nil {
		refusal = lastgood.AndUnkept(refusal, reasonFailed, c.actors.Explained(ctx, s.actor, err))
	}
	return refusal
}

// restore corrects drift from the last good revision.
func (c driftCorrector) restore(ctx context.Context, s *state, record lastgood.Record, refusal error) {
	restored, err := c.Restore(ctx, lastgood.Request{
		Build:  builder.Input{Kustomization: s.ks, As: s.actor, Retry: intervals.Retry(s.ks), Reveal: s.last.secrets.Keep, Spare: s.last.secrets.Spare},
		Record: record, As: s.actor, Gone: s.last.notRecreated(s, loop.As(refusal, reasonFailed).Reason),
	})
	s.last.scheduleDriftCheck(s, restored.Objects, c.clock.Now())
	var did applier.ChangeSet
	did.Add(restored.Changes, nil)
	s.driftCorrected, s.taken = did.String(), restored.Taken
	if s.last.unkept = nil; err != nil {
		s.last.unkept, s.last.unkeptBy = c.actors.Explained(ctx, s.actor, err), s.ks.Generation
	}
}

// awaitIfTransient returns the outcome to report. For a refusal whose reason others may yet remove, that is a wait for them.
func (c driftCorrector) awaitIfTransient(ctx context.Context, s *state, refusal error) error {
	if s.writes != none || s.source.revision == "" {
		return refusal
	}
	judged, mayPass := c.pending.Judge(ctx, transientrefusals.Refusal{Of: s.ks, Revision: s.source.revision, Allowed: s.allowance(s.source.revision, nil), Err: refusal, Now: s.now})
	if mayPass {
		s.plan = applier.Plan{} // none of it was carried out, so it must not be reported as changes
		s.last.awaited.SetSource(s.source.Source)
	}
	return judged
}
