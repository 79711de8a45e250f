package apply

import (
	"errors"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/notices"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestNothingIsReportedTwice: an outcome is reported by an event once, however many runs have the same one, and whether or
// not the memory between them was lost.
func TestNothingIsReportedTwice(t *testing.T) {
	boom := errors.New("boom")
	leaves := func(s *state) { s.stale.retained = []inventory.Entry{{ID: configID("d"), Version: "v1"}} }
	for name, tc := range map[string]struct {
		outcome error
		change  func(*state)
		want    int
	}{
		"it stands":                    {want: 1},
		"what left it stays for now":   {change: leaves, want: 1},
		"it waits for health":          {change: func(s *state) { s.waiting.text = "Running health checks" }},
		"a cluster is silent":          {change: func(s *state) { s.waiting.text, s.waiting.silent = "health is not known", true }, want: 1},
		"it cannot be built":           {outcome: loop.Stalled(meta.BuildFailedReason, boom), want: 1},
		"the brake holds it":           {outcome: loop.Stalled(inventory.ReasonPruneBlocked, boom), want: 1},
		"a dependency is not ready":    {outcome: loop.Waiting(meta.DependencyNotReadyReason, 1, boom), want: 1},
		"a kind is not served yet":     {outcome: loop.Waiting(meta.ProgressingReason, 1, boom), want: 1},
		"something is unhealthy":       {outcome: loop.Waiting(meta.HealthCheckFailedReason, 1, boom), want: 1},
		"another one holds an object":  {outcome: loop.Waiting(siblings.ReasonSharedObject, 1, boom), want: 1},
		"something may not be deleted": {outcome: loop.Waiting(meta.PruneFailedReason, 1, boom), want: 1},
		"others are to take something": {outcome: loop.Waiting(siblings.ReasonHandingOver, 1, boom), want: 1},
		"the hub does not answer":      {outcome: boom, want: 1},
	} {
		for _, forgets := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				outcome, events := loop.As(tc.outcome, reasonFailed), 0
				first := run()
				status, last := first.ks.Status, first.last
				for range 4 {
					s := run()
					if s.ks.Status = status; !forgets {
						s.last = last
					}
					if tc.change != nil {
						tc.change(s)
					}
					s.last.record(s, outcome, noon)
					after := s.ks.DeepCopy()
					after.Status = statusOf(s, outcome, noon)
					events += len(eventsOf(s, after, outcome))
					status = after.Status
				}
				if diff := cmp.Diff(tc.want, events); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestALostClusterIsReported: when health is not known any more there is one Event, and one when it is known again, also where the
// revision did not change.
func TestALostClusterIsReported(t *testing.T) {
	status, last := run().ks.Status, run().last
	var got []notices.Notice
	for _, silent := range []bool{false, true, true, false, false} {
		s := run()
		s.ks.Status, s.last = status, last
		if silent {
			s.waiting.text, s.waiting.silent = "health is not known: west: unreachable since then", true
		}
		s.last.record(s, nil, noon)
		after := s.ks.DeepCopy()
		after.Status = statusOf(s, nil, noon)
		got = append(got, eventsOf(s, after, nil)...)
		status = after.Status
	}
	revision := "Applied revision: " + run().source.revision
	want := []notices.Notice{
		{Type: "Normal", Reason: meta.ReconciliationSucceededReason, Message: revision},
		{Type: "Warning", Reason: "ClusterSilent", Message: "health is not known: west: unreachable since then"},
		{Type: "Normal", Reason: meta.ReconciliationSucceededReason, Message: revision + "; its health is known again"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestWhatCannotBeKeptIsNoChange: drift is corrected only when a check is due, but every run with a refused revision
// repeats why it could not be.
func TestWhatCannotBeKeptIsNoChange(t *testing.T) {
	last := &lastApplied{}
	refusal := loop.Waiting(siblings.ReasonSharedObject, 1, errors.New("it stands in two"))
	message := func() string {
		return loop.As(lastgood.AndUnkept(refusal, reasonFailed, last.unkept), reasonFailed).Error()
	}
	if got := message(); got != "it stands in two" {
		t.Errorf("%q", got)
	}
	last.unkept = errors.New("no right to")
	const want = "it stands in two; and what stays meanwhile cannot be kept as it was: no right to"
	s := run(func(s *state) {
		s.last, s.ks.Status.Conditions = last, nil
		s.ks.Status.LastAppliedRevision = oldRevision
	})
	if got := message(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	last.unkept = refusal
	if got := message(); got != "it stands in two" {
		t.Errorf("for the reason of the refusal itself: %q", got)
	}
	if err := (driftCorrector{}).correct(t.Context(), s, nil); err != nil || last.unkept != nil {
		t.Errorf("once nothing is refused: %v, %v", err, last.unkept)
	}
	s.ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.AppliedKey: "1 sha256:old " + oldRevision + " 7"}}}
	for generation, want := range map[int64]string{
		2: "it stands in two; and what stays meanwhile cannot be kept as it was: spec.path: not found",
		1: "it stands in two", // the path is another one by now
	} {
		last.unkept, last.unkeptBy = errors.New("spec.path: not found"), generation
		if err := (driftCorrector{}).correct(t.Context(), s, refusal); err == nil || err.Error() != want {
			t.Errorf("found by generation %d of 2: %v, want %s", generation, err, want)
		}
	}
}
