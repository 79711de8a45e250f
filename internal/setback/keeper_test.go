package setback_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// store is a hub at a revision.
type store struct {
	client.WithWatch
	revision string
	down     error
	writes   atomic.Int64
	listed   func() // happens once, after a list was read and before it is answered; nil: nothing
}

func newStore(revision string, works ...client.Object) *store {
	s := &store{revision: revision}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(works, system)...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			list.SetResourceVersion(s.revision)
			if listed := s.listed; listed != nil {
				s.listed = nil
				listed()
			}
			return errors.Join(err, s.down)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if s.down != nil {
				return s.down
			}
			s.writes.Add(1)
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	return s
}

func (s *store) system(t *testing.T) *corev1.Namespace {
	t.Helper()
	out := &corev1.Namespace{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// start returns a new run, and the mark that it gives a member that has seen a
// revision.
func start(t *testing.T, s *store, seen string, have *hubclaim.Mark) (*setback.Keeper, *hubclaim.Mark) {
	t.Helper()
	k := setback.New(s, s, nil)
	if err := k.Weigh(t.Context(), "east", have); err != nil {
		t.Fatal(err)
	}
	k.Saw("east", seen)
	next, err := k.Next(t.Context(), "east", have)
	if err != nil {
		t.Fatal(err)
	}
	return k, next
}

func TestRunsAreWrittenOnceAndOnlyIfTheyAreNeeded(t *testing.T) {
	s := newStore("100")
	k, first := start(t, s, "120", nil)
	if first == nil || first.Run != 1 || first.Revision != 120 || s.writes.Load() != 1 {
		t.Fatalf("the first mark is %+v, after %d writes", first, s.writes.Load())
	}
	if again, err := k.Next(t.Context(), "east", first); again != nil || err != nil {
		t.Errorf("a mark for nothing new: %+v, %v", again, err)
	}
	k.Saw("east", "130")
	if next, err := k.Next(t.Context(), "east", first); err != nil || next == nil || next.Revision != 130 || s.writes.Load() != 1 {
		t.Errorf("the next mark is %+v, %v, after %d writes", next, err, s.writes.Load())
	}
	s.revision = "140"
	if k, next := start(t, s, "120", first); next != nil || k.Hold() != nil || s.writes.Load() != 1 {
		t.Errorf("a restart in which nothing happens: %+v, %v, %d writes", next, k.Hold(), s.writes.Load())
	}
}

// TestAStartMarksWhatTheRunBeforeDidNot: a control plane that is stopped right after a
// change has not marked it. The next run does, without a write to the store; and a store
// that is set back to before that change is found.
func TestAStartMarksWhatTheRunBeforeDidNot(t *testing.T) {
	s := newStore("100")
	_, first := start(t, s, "120", nil)
	backup := s.system(t).Annotations[clusterv1alpha1.HistoryAnnotation]
	s.revision = "140"
	k, next := start(t, s, "130", first)
	if want := (&hubclaim.Mark{Run: first.Run, ID: first.ID, Revision: 130}); cmp.Diff(want, next) != "" || s.writes.Load() != 1 {
		t.Fatalf("the mark is %+v, after %d writes", next, s.writes.Load())
	}
	k.Saw("east", "150")
	own, err := k.Next(t.Context(), "east", next)
	if err != nil || own == nil || own.Run != 2 || own.Revision != 150 {
		t.Errorf("after a change the mark is %+v, %v", own, err)
	}
	if again, _ := start(t, s, "150", next); again.Hold() != nil {
		t.Errorf("the mark in the name of the run before is held against the store: %s", again.Hold().Describe())
	}

	back := newStore("125")
	system := back.system(t)
	metav1.SetMetaDataAnnotation(&system.ObjectMeta, clusterv1alpha1.HistoryAnnotation, backup)
	if err := back.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	if k, _ := start(t, back, "120", next); k.Hold() == nil {
		t.Error("the store has lost what the member has seen, and nobody says so")
	}
}

// TestMembersThatAskAtOnce: after a restart, what several members got in the first
// run is no news.
func TestMembersThatAskAtOnce(t *testing.T) {
	s := newStore("100")
	k := setback.New(s, s, nil)
	if err := k.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	clusters := []string{"east", "edge", "west"}
	marks := make([]*hubclaim.Mark, len(clusters))
	var group sync.WaitGroup
	for i, cluster := range clusters {
		k.Saw(cluster, "120")
		group.Go(func() {
			next, err := k.Next(t.Context(), cluster, nil)
			if err != nil {
				t.Error(err)
			}
			marks[i] = next
		})
	}
	group.Wait()
	s.revision = "130"
	later := setback.New(s, s, nil)
	for i, cluster := range clusters {
		if err := later.Weigh(t.Context(), cluster, marks[i]); err != nil {
			t.Fatal(err)
		}
	}
	if hold := later.Hold(); hold != nil {
		t.Errorf("it waits: %s", hold.Describe())
	}
}

func TestAStoreThatIsBehindIsHeldUntilSomebodyResumes(t *testing.T) {
	s := newStore("100")
	_, mark := start(t, s, "120", nil)
	backup := s.system(t).Annotations[clusterv1alpha1.HistoryAnnotation]
	s.revision = "150"
	_, mark = start(t, s, "160", mark)

	back := newStore("110") // it has grown again before it was looked at: its runs tell
	system := back.system(t)
	system.Annotations = map[string]string{clusterv1alpha1.HistoryAnnotation: backup}
	if err := back.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	back.revision = "500"
	reported := 0
	k := setback.New(back, back, nil)
	k.OnChange(func() { reported++ })
	back.down = errors.New("down")
	if err := k.Weigh(t.Context(), "east", mark); err == nil {
		t.Error("a mark was weighed without the hub")
	}
	back.down = nil
	if err := k.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	back.down = errors.New("down")
	if err := k.Weigh(t.Context(), "east", mark); err == nil || k.Hold() == nil {
		t.Errorf("a hold that cannot be written: %v, %v", k.Hold(), err)
	}
	stale := back.system(t)
	stale.ResourceVersion = "999"
	k.Learned(stale)
	if k.Hold() == nil || reported != 1 {
		t.Errorf("what the store does not know yet is forgotten: %v, told %d times", k.Hold(), reported)
	}
	back.down = nil
	if err := k.Weigh(t.Context(), "east", mark); err != nil {
		t.Fatal(err)
	}
	k.Saw("east", "510")
	if next, err := k.Next(t.Context(), "east", mark); next != nil || err != nil {
		t.Errorf("the evidence is written over: %+v, %v", next, err)
	}

	later := setback.New(back, back, nil)
	if err := later.Begin(t.Context()); err != nil || later.Hold() == nil {
		t.Errorf("after a restart: %v, %v", later.Hold(), err)
	}
	if hold, err := setback.Waits(t.Context(), back); err != nil || cmp.Diff([]string{"east"}, hold.Clusters) != "" {
		t.Errorf("Waits = %+v, %v", hold, err)
	}
	if err := setback.New(back, back, nil).Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	later.Learned(back.system(t))
	if later.Hold() != nil {
		t.Error("it waits on")
	}
	if _, next := start(t, back, "510", mark); next == nil || next.Revision != 510 || next.ID == mark.ID {
		t.Errorf("the mark afterwards is %+v", next)
	}
}

// TestWhatWasLostIsLessThanAStartWrites: the store was set back by less than what the
// control plane writes before it looks for the first time.
func TestWhatWasLostIsLessThanAStartWrites(t *testing.T) {
	s := newStore("100")
	_, mark := start(t, s, "120", nil)
	s.revision = "130" // with what the start has added
	for _, tc := range []struct {
		opened int64
		held   bool
	}{{120, false}, {115, true}} {
		k := setback.New(s, s, nil)
		k.Opened(tc.opened)
		if err := k.Weigh(t.Context(), "east", mark); err != nil || (k.Hold() != nil) != tc.held {
			t.Errorf("opened at %d: %v, %v", tc.opened, k.Hold(), err)
		}
	}
}

// TestOneMarkHoldsOneCluster: what one cluster says is its own, until a second one says
// so.
func TestOneMarkHoldsOneCluster(t *testing.T) {
	s := newStore("100")
	k := setback.New(s, s, nil)
	reported := 0
	k.OnChange(func() { reported++ })
	lost := &hubclaim.Mark{Run: 7, ID: "lost", Revision: 500}
	if err := k.Weigh(t.Context(), "east", lost); err != nil {
		t.Fatal(err)
	}
	if k.HoldOf("east") == nil || k.HoldOf("west") != nil || reported != 1 {
		t.Errorf("one says so: east %v, west %v, told %d times", k.HoldOf("east"), k.HoldOf("west"), reported)
	}
	k.Saw("west", "120")
	if next, err := k.Next(t.Context(), "west", nil); next == nil || err != nil {
		t.Errorf("the other cluster goes on without a mark: %v", err)
	}
	if err := k.Weigh(t.Context(), "north", lost); err != nil {
		t.Fatal(err)
	}
	if k.HoldOf("east") == nil || k.HoldOf("west") == nil || reported != 2 {
		t.Errorf("two say so: east %v, west %v, told %d times", k.HoldOf("east"), k.HoldOf("west"), reported)
	}
	if err := k.Resume(t.Context()); err != nil || k.HoldOf("east") != nil || reported != 3 {
		t.Errorf("somebody says to go on: %v, %v, told %d times", k.HoldOf("east"), err, reported)
	}
}

// TestTheReasonIsOneWhereTheClockRuns: what is kept in mind, what the store says and what
// clusters are told are one, however long the store takes to write it down.
func TestTheReasonIsOneWhereTheClockRuns(t *testing.T) {
	s := newStore("100")
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	k := setback.New(s, s, clock)
	if err := k.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	var reported []string
	k.OnChange(func() {
		reported = append(reported, k.Hold().Describe())
		clock.SetTime(clock.Now().Add(time.Second))
	})
	for _, revision := range []int64{500, 600} {
		if err := k.Weigh(t.Context(), "east", &hubclaim.Mark{Run: 7, ID: "lost", Revision: revision}); err != nil {
			t.Fatal(err)
		}
		stored, err := setback.Waits(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored.Describe(), reported[len(reported)-1]); diff != "" {
			t.Errorf("revision %d: the store (-) and what was told last (+):\n%s", revision, diff)
		}
	}
	if len(reported) != 2 {
		t.Errorf("told %q", reported)
	}
}

func TestWhatIsPending(t *testing.T) {
	work := func(name, message string, manifests ...string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: name}}
		for _, m := range manifests {
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
		}
		if message != "" {
			w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Message: message}}
		}
		return w
	}
	leaving := work("leaving", "", `{"kind":"Namespace","metadata":{"name":"shop"}}`)
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"f/f"}, ptr.To(metav1.Now())
	pulls := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	pulled := work("pulled", "")
	pulled.Namespace = "karmada-es-edge"
	cluster := func(name string, ready metav1.ConditionStatus) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
		return c
	}
	pulls.Status = cluster("", metav1.ConditionTrue).Status
	s := newStore("1", pulls, pulled,
		cluster("west", metav1.ConditionTrue), cluster("east", metav1.ConditionTrue), cluster("north", metav1.ConditionFalse),
		work("two", "Failed to apply all manifests (0/2): [held: would set back Deployment shop/web, held: would make ConfigMap shop/web]"),
		work("failed", "Failed to apply all manifests (0/1): no such kind"), work("fine", ""), leaving,
	)
	hold := &hubclaim.Hold{Clusters: []string{"east", "edge"}}
	plan := func() setback.Plan {
		t.Helper()
		got, err := setback.Pending(t.Context(), s, hold)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff([]string{"east", "west"}, plan().Uncompared); diff != "" {
		t.Errorf("before they were looked at (-want +got):\n%s", diff)
	}
	for _, name := range []string{"east", "west"} {
		c := &clusterv1alpha1.Cluster{}
		if err := s.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
			t.Fatal(err)
		}
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionHeld, Status: metav1.ConditionTrue, Message: hold.Describe()})
		if err := s.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for name, reason := range map[string]string{"copied": clusterv1alpha1.ClusterElsewhereReason, "moved": clusterv1alpha1.ClusterMovingReason} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		if err := s.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	want := setback.Plan{Idle: []string{"west"}, Unseen: []string{"north"}, Elsewhere: []string{"copied", "moved"}, Changes: []setback.Change{
		{Cluster: "east", Verb: "make", Object: "ConfigMap shop/web"},
		{Cluster: "east", Verb: "set back", Object: "Deployment shop/web"},
		{Cluster: "east", Verb: "remove", Object: "Namespace shop"},
		{Cluster: "edge", Verb: "take over", Object: "1 Works"},
	}}
	if diff := cmp.Diff(want, plan()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	hold.Clusters = []string{"east", "north"} // all wait, and of edge nothing was heard
	if diff := cmp.Diff([]string{"east", "edge", "west"}, plan().Uncompared); diff != "" {
		t.Errorf("once more is known (-want +got):\n%s", diff)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "edge"}, Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NowMicro())}}
	if err := s.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"east", "west"}, plan().Uncompared); diff != "" {
		t.Errorf("once the agent has reported (-want +got):\n%s", diff)
	}
}
