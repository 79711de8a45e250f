package decider

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestWakingIsCoalesced: clusters that report all the time wake what waits at
// once, and then once a second.
func TestWakingIsCoalesced(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	w := newUnschedulable()
	w.Add(divided("waits", 5), workv1alpha2.BindingReasonUnschedulable, 0)
	woken := make(chan int, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, clock, func(context.Context) {
			woken <- len(w.Due(func(workv1alpha2.Binding, string) bool { return true }))
		})
	}()
	var got []int
	for range 3 {
		for range 50 {
			w.MoreCapacity("m1", "m2")
		}
		got = append(got, <-woken)
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return clock.HasWaiters(), nil
		}); err != nil {
			t.Fatal("nothing waits for more events")
		}
		w.MoreCapacity("m1")
		got = append(got, len(woken))
		clock.Step(coalesce)
		got = append(got, <-woken)
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return clock.HasWaiters(), nil
		}); err != nil {
			t.Fatal("nothing waits for more events")
		}
		clock.Step(coalesce)
	}
	stop()
	<-done
	if diff := cmp.Diff([]int{1, 0, 1, 1, 0, 1, 1, 0, 1}, got); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

// TestWatchesAreNotHeldUp: while it is found out whom what has come is for, more
// may come.
func TestWatchesAreNotHeldUp(t *testing.T) {
	w := newUnschedulable()
	w.Add(divided("waits", 5), workv1alpha2.BindingReasonUnschedulable, 0)
	w.MoreCapacity("m1")
	free := false
	w.Due(func(workv1alpha2.Binding, string) bool {
		if free = w.mu.TryLock(); free {
			w.mu.Unlock()
		}
		return true
	})
	if !free {
		t.Error("nobody can tell of changes meanwhile")
	}
}

// TestAStandByKeepsNothing: a replica that does not lead hears of everything and
// wakes nobody.
func TestAStandByKeepsNothing(t *testing.T) {
	d := New(hubOf().Build(), Options{})
	one, other := divided("one", 1, apart("app=x")), divided("one", 1, apart("app=x"))
	other.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}}
	d.BindingChanged(one, other)
	d.BindingGone(other)
	d.ClusterChanged(cluster("m1", capacity(1)), cluster("m1", capacity(2)))
	got := []int{len(d.unschedulable.groups), len(d.unschedulable.clusters), len(d.reservations.byBinding), len(d.reservations.groups)}
	if diff := cmp.Diff([]int{0, 0, 0, 0}, got); diff != "" {
		t.Errorf("groups and clusters that have changed, reservations, groups (-want +got):\n%s", diff)
	}
}
