package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
)

// answering assesses everything as healthy, or fails, and records whether it was asked of what is settled.
type answering struct {
	Assessor
	err      error
	verdicts []health.Verdict
	asked    []bool
}

func (a *answering) Assess(_ context.Context, req health.Request) (health.Assessment, error) {
	a.asked = append(a.asked, req.Unchanged)
	return health.Assessment{Uncounted: []string{"west"}, Verdicts: a.verdicts}, a.err
}

// TestDoubt: the health of what is ready is found out again only if it is in doubt, and once.
func TestDoubt(t *testing.T) {
	waits := func(s *state) { s.ks.Spec.Wait, s.desired = true, nil } // so that no object has to be read
	ready := func(s *state) { s.current, s.source.revision = true, oldRevision }
	full := func(s *state) { s.source.revision = oldRevision }
	doubted := func(s *state) { doubt(s.last, true) }
	const is, isAside = "Applied revision: " + oldRevision, "Applied revision: " + oldRevision + "; not counting what was not heard of: west (kustomize.flotilla.io/max-unreachable)"
	for name, tc := range map[string]struct {
		state   *state
		err     error
		asked   []bool
		doubts  bool
		message string // of Ready, afterwards
	}{
		"one that is ready":                          {state: run(waits, ready), message: is},
		"one that is ready, in doubt":                {state: run(waits, ready, doubted), asked: []bool{true}, message: isAside},
		"one that is ready, in doubt that stays":     {state: run(waits, ready, doubted), err: errors.New("no"), asked: []bool{true}, doubts: true},
		"one that is applied once more":              {state: run(waits, full), asked: []bool{false}, message: isAside},
		"one that is applied once more, in doubt":    {state: run(waits, full, doubted), asked: []bool{false}, message: isAside},
		"one whose health nobody asks for, in doubt": {state: run(ready, doubted), doubts: true, message: is},
		"one that still waits, in no doubt":          {state: run(waits, func(s *state) { s.current = true }), asked: []bool{false}, message: "Applied revision: " + newRevision + isAside[len(is):]},
	} {
		t.Run(name, func(t *testing.T) {
			assessor := &answering{err: tc.err}
			r := &Reconciler{deps: Deps{Assessor: assessor}, applier: applier.New(nil, nil, applier.Options{})}
			s := tc.state
			if _, err := r.assessHealth(t.Context(), s); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.asked, assessor.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if got := s.last.doubts; got != tc.doubts {
				t.Errorf("in doubt afterwards: %t", got)
			}
			if tc.err != nil {
				return
			}
			for _, c := range statusOf(s, nil, noon).Conditions {
				if c.Type == "Ready" && c.Message != tc.message {
					t.Errorf("message = %q, want %q", c.Message, tc.message)
				}
			}
		})
	}
}

// TestASilentClusterIsLookedAtAgainSoon: one that has just found a cluster silent may have missed that it is back, as its status
// did not say yet what it waits for; one that says so is told.
func TestASilentClusterIsLookedAtAgainSoon(t *testing.T) {
	silent := func(s *state) {
		s.ks.Status.Conditions[0].Status, s.ks.Status.Conditions[0].Reason = "Unknown", health.ReasonClusterSilent
	}
	for name, tc := range map[string]struct {
		state *state
		again time.Duration
	}{
		"it is applied":       {run(), soon},
		"it says so already":  {run(silent), silentCheck},
		"it was ready before": {run(func(s *state) { s.current, s.source.revision, s.last.doubts = true, oldRevision, true }), soon},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.ks.Spec.Wait, tc.state.desired = true, nil // so that no object has to be read
			assessor := &answering{verdicts: []health.Verdict{{ID: configID("a"), State: rollup.Unknown, Reason: "west: unreachable"}}}
			r := &Reconciler{deps: Deps{Assessor: assessor}, applier: applier.New(nil, nil, applier.Options{})}
			next, err := r.assessHealth(t.Context(), tc.state)
			if err != nil || next.After != tc.again || !tc.state.waiting.silent {
				t.Errorf("again after %s, want %s: silent %t, %v", next.After, tc.again, tc.state.waiting.silent, err)
			}
		})
	}
}
