package apply

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
)

// answering assesses everything as healthy, or fails, and records whether it was asked of what is settled.
type answering struct {
	Assessor
	err   error
	asked []bool
}

func (a *answering) Assess(_ context.Context, req health.Request) (health.Assessment, error) {
	a.asked = append(a.asked, req.Settled)
	return health.Assessment{Uncounted: []string{"west"}}, a.err
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
			if _, err := r.assess(t.Context(), s); !errors.Is(err, tc.err) {
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
