package setback_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// openedAt returns the agent of east, and a hub that says where it was opened.
func openedAt(t *testing.T, history hubclaim.History, revision string, mark *hubclaim.Mark, opened *int64) *edge {
	t.Helper()
	s := newStore(revision)
	system := s.system(t)
	system.Annotations = map[string]string{clusterv1alpha1.HistoryAnnotation: history.Encode()}
	if err := s.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	e := newEdge(t, s, mark)
	e.Checker = setback.NewChecker(setback.CheckerOptions{
		Cluster: "east", Hub: s, Asks: s, Member: e.member, Clock: e.clock,
		Opened: func(context.Context) (int64, error) { return *opened, nil },
	})
	return e
}

// TestAnAgentGoesByWhereItsHubWasOpened: a hub that was set back has grown past the mark,
// and has written its run down since.
func TestAnAgentGoesByWhereItsHubWasOpened(t *testing.T) {
	late := hubclaim.History{Runs: []hubclaim.Run{{Number: 8, ID: "h", Began: 100}, {Number: 9, ID: "i", Began: 426}}, Forgiven: []hubclaim.Lost{{ID: "f"}}}
	writing := hubclaim.History{Runs: []hubclaim.Run{{Number: 8, ID: "h", Began: 100}, {Number: 9, ID: "i"}}}
	before := hubclaim.History{Runs: []hubclaim.Run{{Number: 8, ID: "h", Began: 100}}}
	for name, tc := range map[string]struct {
		history hubclaim.History
		mark    hubclaim.Mark
		opened  int64
		held    bool
	}{
		"what the run before showed last":         {late, hubclaim.Mark{Run: 8, ID: "h", Revision: 266}, 266, false},
		"more than there was":                     {late, hubclaim.Mark{Run: 8, ID: "h", Revision: 271}, 266, true},
		"more, before the run is written down":    {before, hubclaim.Mark{Run: 8, ID: "h", Revision: 271}, 266, true},
		"more, by a run that is let go":           {late, hubclaim.Mark{Run: 8, ID: "f", Revision: 271}, 266, false},
		"what the present run has shown":          {late, hubclaim.Mark{Run: 9, ID: "i", Revision: 430}, 266, false},
		"what it shows while it is written down":  {writing, hubclaim.Mark{Run: 9, ID: "i", Revision: 430}, 266, false},
		"more than a hub has that does not say":   {late, hubclaim.Mark{Run: 8, ID: "h", Revision: 271}, 0, false},
		"more than that by the run's own account": {late, hubclaim.Mark{Run: 8, ID: "h", Revision: 427}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := openedAt(t, tc.history, "450", &tc.mark, &tc.opened)
			if err := e.meet(t); errors.Is(err, hub.ErrHeld) != tc.held || (err != nil) != tc.held {
				t.Errorf("Meet = %v", err)
			}
		})
	}
}

// TestNoMarkIsOfARunThatIsOver: what the present run shows is marked by that one, once it
// is written down: by the one before it would be what was lost.
func TestNoMarkIsOfARunThatIsOver(t *testing.T) {
	opened := int64(266)
	e := openedAt(t, hubclaim.History{Runs: []hubclaim.Run{{Number: 8, ID: "h", Began: 100}}}, "300", nil, &opened)
	if err := e.meet(t); err != nil {
		t.Fatal(err)
	}
	e.Saw("east", "270")
	if mark := e.next(t, nil); mark != nil {
		t.Fatalf("it is marked as of an earlier run: %v", mark)
	}
	system := e.system(t)
	system.Annotations[clusterv1alpha1.HistoryAnnotation] = hubclaim.History{Runs: []hubclaim.Run{{Number: 8, ID: "h", Began: 100}, {Number: 9, ID: "i"}}}.Encode()
	if err := e.store.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	if mark := e.next(t, nil); mark != nil {
		t.Errorf("the hub is asked again at once: %v", mark)
	}
	e.clock.SetTime(e.clock.Now().Add(5e9))
	mark := e.next(t, nil)
	if mark == nil || mark.ID != "i" || mark.Revision != 270 {
		t.Errorf("it is marked %v", mark)
	}
	if err := e.meet(t); err != nil {
		t.Errorf("the same run, after a fault of the way: %v", err)
	}
	carries := &corev1.Namespace{}
	if err := e.member.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, carries); err != nil {
		t.Fatal(err)
	}
	carries.Annotations[clusterv1alpha1.ClaimAnnotation] = (&hubclaim.Claim{Hub: "hub", Cluster: "east", Mark: mark}).Encode()
	if err := e.member.Update(t.Context(), carries); err != nil {
		t.Fatal(err)
	}
	system = e.system(t)
	system.Annotations[clusterv1alpha1.HistoryAnnotation] = hubclaim.History{Runs: []hubclaim.Run{{Number: 8, ID: "h", Began: 100}, {Number: 9, ID: "i", Began: 267}}}.Encode()
	if err := e.store.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	if err := e.meet(t); err != nil {
		t.Errorf("the same run, once it is settled: %v", err)
	}
	opened = 268 // it was set back meanwhile, and has grown past that
	e.store.revision = "400"
	if err := e.meet(t); !errors.Is(err, hub.ErrHeld) {
		t.Errorf("a hub that was set back under a running agent: %v", err)
	}
}
