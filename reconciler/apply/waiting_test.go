package apply

import (
	"errors"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/notices"
)

// TestWaitingForASourceIsNoWarning: a Kustomization is most often created together
// with its source, which has no artifact in the first seconds. Its conditions show
// what it waits for, as Flux's do; an event would come for each new Kustomization.
func TestWaitingForASourceIsNoWarning(t *testing.T) {
	unknown := func(s *state) { s.source = source{Source: s.source.Source} }
	fresh := func(s *state) { s.ks.Status.Conditions = nil }
	waits := loop.Waiting(meta.ArtifactFailedReason, time.Second, errors.New("the source has no artifact yet"))
	cases := map[string]struct {
		state   *state
		outcome error
		want    []notices.Notice
	}{
		"a new Kustomization whose source has no artifact yet": {state: run(unknown, fresh), outcome: waits},
		"one that was ready, and whose source is gone":         {state: run(unknown), outcome: waits},
		"an artifact that cannot be read": {
			state: run(), outcome: loop.Waiting(meta.ArtifactFailedReason, time.Second, errors.New("disk failure")),
			want: []notices.Notice{{Type: "Warning", Reason: meta.ArtifactFailedReason, Message: "disk failure"}},
		},
		"a source that may not be used": {
			state: run(unknown), outcome: loop.Stalled("AccessDenied", errors.New("it is in another namespace")),
			want: []notices.Notice{{Type: "Warning", Reason: "AccessDenied", Message: "it is in another namespace"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outcome := loop.As(tc.outcome, reasonFailed)
			after := tc.state.ks.DeepCopy()
			after.Status = statusOf(tc.state, outcome, noon)
			if diff := cmp.Diff(tc.want, eventsOf(tc.state, after, outcome)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			ready, reconciling := false, false
			for _, c := range after.Status.Conditions {
				ready = ready || c.Type == meta.ReadyCondition && c.Status == "False" && c.Reason == outcome.Reason
				reconciling = reconciling || c.Type == meta.ReconcilingCondition && c.Status == "True" && c.Reason == meta.ProgressingWithRetryReason
			}
			if !ready || reconciling != (outcome.Class == loop.ClassWaiting) {
				t.Errorf("conditions: %v", after.Status.Conditions)
			}
		})
	}
}
