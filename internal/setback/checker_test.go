package setback_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// edge is a member with a claim, and the agent that asks it.
type edge struct {
	*setback.Checker
	*store
	clock  *clocktesting.FakePassiveClock
	member client.Client
	down   error
	turns  int
}

// newEdge returns the agent of east, whose member carries a mark.
func newEdge(t *testing.T, s *store, mark *hubclaim.Mark) *edge {
	t.Helper()
	e := &edge{store: s, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	claim := &hubclaim.Claim{Hub: "hub", Cluster: "east", Mark: mark}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", Annotations: map[string]string{clusterv1alpha1.ClaimAnnotation: claim.Encode()}}}
	e.member = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(system).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return errors.Join(e.down, c.Get(ctx, key, obj, opts...))
		},
	}).Build()
	e.Checker = setback.NewChecker(setback.CheckerOptions{Cluster: "east", Hub: s, Asks: s, Member: e.member, Clock: e.clock})
	e.OnChange(func() { e.turns++ })
	return e
}

// meet has the agent look at its hub.
func (e *edge) meet(t *testing.T) error {
	t.Helper()
	system := e.system(t)
	system.UID = "hub"
	return e.Meet(t.Context(), system)
}

// next returns the mark that the member gets.
func (e *edge) next(t *testing.T, have *hubclaim.Mark) *hubclaim.Mark {
	t.Helper()
	if err := e.Weigh(t.Context(), "east", have); err != nil {
		t.Fatal(err)
	}
	mark, err := e.Next(t.Context(), "east", have)
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// TestMarksOfAnAgent: the hub writes a run down for agents, and the agent marks what it
// has seen with the run that is the last by then.
func TestMarksOfAnAgent(t *testing.T) {
	s := newStore("100")
	e := newEdge(t, s, nil)
	if err := e.meet(t); err != nil {
		t.Fatal(err)
	}
	e.Saw("east", "101")
	if mark := e.next(t, nil); mark != nil {
		t.Errorf("a mark of no run: %v", mark)
	}
	k := setback.New(s, s, nil)
	for range 2 {
		if err := k.Agents(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.writes.Load(); n != 2 {
		t.Errorf("the run was written %d times", n)
	}
	if mark := e.next(t, nil); mark != nil {
		t.Errorf("a hub without runs is asked again at once: %v", mark)
	}
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	first := e.next(t, nil)
	if first == nil || first.Run != 1 || first.Revision != 101 {
		t.Fatalf("the first mark is %v", first)
	}
	if report, ok := e.Report(); !ok || report != (hubclaim.Report{Mark: *first}) {
		t.Errorf("the hub is told %v, %t", report, ok)
	}
	if mark := e.next(t, first); mark != nil {
		t.Errorf("a mark for nothing new: %v", mark)
	}

	s.revision = "200"
	next := setback.New(s, s, nil) // the hub starts anew; the agent does not notice
	if err := next.Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Saw("east", "900")
	second := e.next(t, first)
	if second == nil || second.Run != 2 || second.Revision != 900 {
		t.Errorf("the mark of the next run is %v", second)
	}
	s.revision = "950"
	if err := e.meet(t); err != nil {
		t.Errorf("a hub that goes on: %v", err)
	}
	if err := next.Heard(t.Context(), "east", hubclaim.Report{Mark: *second}, true); err != nil || next.Hold() != nil {
		t.Errorf("a hub that goes on waits: %v, %v", next.Hold(), err)
	}
}

// TestAMarkOfARunThatIsWrittenDownLate: an agent that is quicker than a hub that has just
// begun marks with the run before, and with the present one once that is written down.
func TestAMarkOfARunThatIsWrittenDownLate(t *testing.T) {
	s := newStore("100")
	if err := setback.New(s, s, nil).Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := newEdge(t, s, nil)
	if err := e.meet(t); err != nil {
		t.Fatal(err)
	}
	e.Saw("east", "201")
	early := e.next(t, nil)
	if early == nil || early.Run != 1 || early.Revision != 201 {
		t.Fatalf("the mark by the run before is %v", early)
	}
	s.revision = "201"
	if err := setback.New(s, s, nil).Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mark := e.next(t, early); mark != nil {
		t.Errorf("the hub is asked again at once: %v", mark)
	}
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	late := e.next(t, early)
	if late == nil || late.Run != 2 || late.ID == early.ID || late.Revision != 201 {
		t.Fatalf("the mark by the present run is %v", late)
	}
	if err := setback.New(s, s, nil).Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	if mark := e.next(t, late); mark != nil {
		t.Errorf("nothing has concerned the member since, and it gets the mark %v", mark)
	}
}

// TestWhenAnAgentHolds: what the hub and the member carry, and what follows for an
// agent that has just started.
func TestWhenAnAgentHolds(t *testing.T) {
	history := hubclaim.History{Runs: []hubclaim.Run{{Number: 1, ID: "a", Began: 10}, {Number: 2, ID: "b", Began: 50}}}
	lost := hubclaim.Mark{Run: 3, ID: "c", Revision: 60}
	one, _ := history.WithHold("west", &lost, 55, time.Unix(500, 0))
	holding, _ := one.WithHold("north", &lost, 55, time.Unix(500, 0))
	for name, tc := range map[string]struct {
		history  hubclaim.History
		revision string
		mark     *hubclaim.Mark
		down     error
		held     bool
		report   *hubclaim.Report
	}{
		"a member that has seen nothing":             {history, "100", nil, nil, false, nil},
		"a member that has seen what the hub has":    {history, "100", &hubclaim.Mark{Run: 2, ID: "b", Revision: 100}, nil, false, &hubclaim.Report{Mark: hubclaim.Mark{Run: 2, ID: "b", Revision: 100}}},
		"a revision that the hub has not reached":    {history, "100", &hubclaim.Mark{Run: 2, ID: "b", Revision: 101}, nil, true, &hubclaim.Report{Mark: hubclaim.Mark{Run: 2, ID: "b", Revision: 101}, Behind: true}},
		"a run that the hub does not know":           {history, "100", &lost, nil, true, &hubclaim.Report{Mark: lost, Behind: true}},
		"a run that the hub goes on without":         {holding.Resumes(), "100", &lost, nil, false, &hubclaim.Report{Mark: lost}},
		"a hub of which another member says so":      {one, "100", nil, nil, false, nil},
		"a hub of which two others say so":           {holding, "100", nil, nil, true, nil},
		"a hub of which nothing is known any more":   {hubclaim.History{}, "100", &lost, nil, true, &hubclaim.Report{Mark: lost, Behind: true}},
		"a member that does not say what it carries": {history, "100", nil, errors.New("down"), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(tc.revision)
			system := s.system(t)
			system.Annotations = map[string]string{clusterv1alpha1.HistoryAnnotation: tc.history.Encode()}
			if err := s.Update(t.Context(), system); err != nil {
				t.Fatal(err)
			}
			e := newEdge(t, s, tc.mark)
			e.down = tc.down
			if err := e.meet(t); errors.Is(err, hub.ErrHeld) != tc.held || (err != nil) != tc.held {
				t.Errorf("Meet = %v", err)
			}
			if tc.down == nil && (e.Hold() != nil) != tc.held {
				t.Errorf("Hold = %v", e.Hold())
			}
			var report *hubclaim.Report
			if r, ok := e.Report(); ok {
				report = &r
			}
			if diff := cmp.Diff(tc.report, report); diff != "" {
				t.Errorf("what the hub is told (-want +got):\n%s", diff)
			}
			if e.Saw("east", "500"); tc.held && e.next(t, tc.mark) != nil {
				t.Error("the evidence is written over")
			}
			if tc.down != nil && e.turns != 1 {
				t.Error("nobody is told that the member says again what it carries")
			}
		})
	}
}

// TestWhatHappensWhileAnAgentLooks: a hub goes on while it is asked how far it is. What it
// shows by its watches meanwhile, and marks that are made of it, are of after its answer.
func TestWhatHappensWhileAnAgentLooks(t *testing.T) {
	t.Run("a watch shows more", func(t *testing.T) {
		s := newStore("100")
		if err := setback.New(s, s, nil).Agents(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := newEdge(t, s, nil)
		if err := e.meet(t); err != nil {
			t.Fatal(err)
		}
		e.Saw("east", "101")
		mark := e.next(t, nil)
		s.revision = "102"
		s.listed = func() { e.Saw("east", "103") }
		if err := e.meet(t); err != nil || e.Hold() != nil {
			t.Errorf("the hub is held to be behind: %v", err)
		}
		if next := e.next(t, mark); next == nil || next.Revision != 103 {
			t.Errorf("the next mark is %v, want one of revision 103", next)
		}
	})
	t.Run("a run is written down", func(t *testing.T) {
		s := newStore("100")
		first := setback.New(s, s, nil)
		if err := first.Agents(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := s.system(t)
		before.UID = "hub"
		s.revision = "200"
		if err := setback.New(s, s, nil).Agents(t.Context()); err != nil {
			t.Fatal(err)
		}
		run, _ := hubclaim.ParseHistory(s.system(t).Annotations[clusterv1alpha1.HistoryAnnotation]).Last()
		e := newEdge(t, s, &hubclaim.Mark{Run: run.Number, ID: run.ID, Revision: 150})
		if err := e.Meet(t.Context(), before); err != nil || e.Hold() != nil {
			t.Errorf("the hub is held to be behind: %v", err)
		}
	})
}

// TestAnAgentThatKnowsMore: the hub is behind its agent, waits for that, and goes on
// with it, although its store has grown past the number by then.
func TestAnAgentThatKnowsMore(t *testing.T) {
	s := newStore("100")
	if err := setback.New(s, s, nil).Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := newEdge(t, s, nil)
	if err := e.meet(t); err != nil {
		t.Fatal(err)
	}
	e.Saw("east", "150")
	mark := e.next(t, nil)
	if mark == nil {
		t.Fatal("there is no mark")
	}
	e.Saw("east", "180") // and not in the mark yet

	s.revision = "160" // an older copy of the store
	restored := setback.New(s, s, nil)
	if err := restored.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"160", "700"} {
		s.revision = revision
		if err := e.meet(t); !errors.Is(err, hub.ErrHeld) {
			t.Fatalf("at %s: %v", revision, err)
		}
	}
	report, ok := e.Report()
	if !ok || !report.Behind || e.turns != 1 {
		t.Fatalf("the hub is told %v, %t; %d turns", report, ok, e.turns)
	}
	if err := restored.Heard(t.Context(), "east", report, false); err != nil || restored.Hold() == nil {
		t.Fatalf("the hub does not wait: %v", err)
	}
	writes := s.writes.Load()
	if err := restored.Heard(t.Context(), "east", hubclaim.Report{Mark: hubclaim.Mark{Run: 9, ID: "x", Revision: 9}, Behind: true}, true); err != nil || s.writes.Load() != writes {
		t.Errorf("an agent that says so again and again has the hub write: %v", err)
	}
	if err := e.meet(t); !errors.Is(err, hub.ErrHeld) {
		t.Errorf("the hub waits, and the agent does not: %v", err)
	}
	if err := restored.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.meet(t); err != nil || e.Hold() != nil || e.turns != 2 {
		t.Errorf("afterwards: %v, %v, %d turns", err, e.Hold(), e.turns)
	}
	if next := e.next(t, mark); next != nil {
		t.Errorf("what was lost is in the mark afterwards: %v", next)
	}
	e.Saw("east", "710")
	if next := e.next(t, mark); next == nil || next.Revision != 710 {
		t.Errorf("the mark afterwards is %v", next)
	}
	if err := restored.Heard(t.Context(), "east", report, true); err != nil || restored.Hold() != nil {
		t.Errorf("what was forgiven counts: %v, %v", restored.Hold(), err)
	}
}

// TestWhatAgentsSayOfThisRun: agents mark with the run before until the present one is
// written down, which it is once something has changed. What is ahead of what has
// changed was lost.
func TestWhatAgentsSayOfThisRun(t *testing.T) {
	before := newStore("10")
	if err := setback.New(before, before, nil).Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	history := hubclaim.ParseHistory(before.system(t).Annotations[clusterv1alpha1.HistoryAnnotation])
	run, _ := history.Last()
	for name, tc := range map[string]struct {
		changed []string // revisions that the hub's watch has shown
		says    int64
		first   error // what is reported at first
		held    bool  // what follows in the end
	}{
		"what it has seen before":              {nil, 1000, nil, false},
		"what the hub has seen, too":           {[]string{"1200"}, 1200, nil, false},
		"what the hub's watch has yet to show": {nil, 1001, setback.ErrNotYet, true},
		"what lies before the first change":    {[]string{"1200"}, 1100, setback.ErrNotYet, true},
		"what lies beyond the last change":     {[]string{"1200"}, 1300, setback.ErrNotYet, true},
		"the first of several changes":         {[]string{"1200", "1300"}, 1200, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore("1020") // with what the start has written
			system := s.system(t)
			system.Annotations = map[string]string{clusterv1alpha1.HistoryAnnotation: history.Encode()}
			if err := s.Update(t.Context(), system); err != nil {
				t.Fatal(err)
			}
			k := setback.New(s, s, nil)
			k.Opened(1000)
			if err := k.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, revision := range tc.changed {
				k.Saw("east", revision)
			}
			report := hubclaim.Report{Mark: hubclaim.Mark{Run: run.Number, ID: run.ID, Revision: tc.says}}
			if err := k.Heard(t.Context(), "east", report, false); !errors.Is(err, tc.first) || k.Hold() != nil {
				t.Errorf("at first: %v, %v", err, k.Hold())
			}
			if writes := s.writes.Load(); writes != 0 {
				t.Errorf("it wrote %d times", writes)
			}
			if err := k.Heard(t.Context(), "east", report, true); err != nil || (k.Hold() != nil) != tc.held {
				t.Errorf("in the end: %v, %v", err, k.Hold())
			}
		})
	}
}

// TestAStartAfterWhichNothingChangesWritesNothing: the store knows of a run once
// something has changed that agents may mark, or one of them is silent.
func TestAStartAfterWhichNothingChangesWritesNothing(t *testing.T) {
	before := newStore("10")
	if err := setback.New(before, before, nil).Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	history := before.system(t).Annotations[clusterv1alpha1.HistoryAnnotation]
	run, _ := hubclaim.ParseHistory(history).Last()
	seen := hubclaim.Report{Mark: hubclaim.Mark{Run: run.Number, ID: run.ID, Revision: 90}}
	for name, tc := range map[string]struct {
		happens func(k *setback.Keeper)
		writes  int64
	}{
		"nothing": {func(*setback.Keeper) {}, 0},
		"all agents are heard": {func(k *setback.Keeper) {
			k.Saw("edge", "90") // what the watch begins with
			k.Alive("edge")
			k.Say("edge", seen)
			k.CallRoll()
		}, 0},
		"something changes": {func(k *setback.Keeper) { k.Saw("edge", "101") }, 2},
		"an agent is silent": {func(k *setback.Keeper) {
			k.Meet("quiet")
			k.Alive("edge")
			k.CallRoll()
		}, 2},
		"both, more than once": {func(k *setback.Keeper) {
			k.Saw("edge", "101")
			k.Saw("edge", "102")
			k.CallRoll()
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore("100")
			system := s.system(t)
			system.Annotations = map[string]string{clusterv1alpha1.HistoryAnnotation: history}
			if err := s.Update(t.Context(), system); err != nil {
				t.Fatal(err)
			}
			k := setback.New(s, s, nil)
			if err := k.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			k.Meet("edge")
			tc.happens(k)
			for range 3 {
				if err := k.WeighAgents(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if writes := s.writes.Load(); writes != tc.writes || k.Hold() != nil {
				t.Errorf("it wrote %d times, want %d; it waits: %v", writes, tc.writes, k.Hold())
			}
		})
	}
}
