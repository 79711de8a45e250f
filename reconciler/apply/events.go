package apply

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/notices"
)

// eventsOf returns the events of a run.
func eventsOf(s *state, after *kustomizev1.Kustomization, outcome *loop.Error) []notices.Notice {
	m := s.last
	m.mu.Lock()
	defer m.mu.Unlock()
	return notices.Of(notices.Run{
		Before: s.ks, After: after, Outcome: outcome,
		Revision: s.source.revision, Included: s.source.included,
		Changes: m.did.Changes.String(), Omitted: m.did.Omits(s.omitted.String(), s.ks.Status.LastAppliedRevision == s.source.revision),
		DriftCorrected: s.driftCorrected, OwedDeleted: s.owed.deleted, Repeated: m.returns.Message,
		Anew: m.did.Anew, SameContent: s.sameContent, Undecided: len(s.stale.Undecided) > 0,
	})
}
