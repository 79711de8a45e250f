package decider

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/decider/decidertest"
)

func decide(t *testing.T, d *Decider, b workv1alpha2.Binding) placement.Decision {
	t.Helper()
	decision, _, err := d.Decide(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

// TestNoClusterIsOvercommitted: of 200 bindings that are decided at once, as many
// are placed as there is capacity for, and not one more.
func TestNoClusterIsOvercommitted(t *testing.T) {
	cores := map[string]int64{"m1": 100, "m2": 60, "m3": 40, "m4": 100}
	var members []client.Object
	for name, n := range cores {
		members = append(members, cluster(name, capacity(n)))
	}
	d := New(hubOf(members...).Build(), Options{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	const each, fit = 2, 150
	todo := make(chan *workv1alpha2.ResourceBinding)
	decisions := make(chan placement.Decision, 200)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for b := range todo {
				decision, _, err := d.Decide(t.Context(), b)
				if err != nil {
					t.Error(err)
				}
				decisions <- decision
			}
		})
	}
	for i := range 200 {
		todo <- divided(fmt.Sprint("web", i), each)
	}
	close(todo)
	group.Wait()
	close(decisions)
	got, taken := map[string]int{}, map[string]int64{}
	for decision := range decisions {
		got[decision.Record.Reason]++
		for _, target := range decision.Clusters {
			taken[target.Name] += int64(target.Replicas)
		}
	}
	if diff := cmp.Diff(map[string]int{workv1alpha2.BindingReasonSuccess: fit, workv1alpha2.BindingReasonUnschedulable: 200 - fit}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(cores, taken); diff != "" {
		t.Errorf("cores that are reserved (-there are +reserved):\n%s", diff)
	}
}

// TestPeersStayApart: bindings that keep away from each other and are decided at
// once never get the same cluster; those for which none is left wait.
func TestPeersStayApart(t *testing.T) {
	var members []client.Object
	for i := range 6 {
		members = append(members, cluster(fmt.Sprint("m", i), capacity(1000)))
	}
	d := New(hubOf(members...).Build(), Options{})
	var (
		mu    sync.Mutex
		on    = map[string]int{}
		waits int
		group sync.WaitGroup
	)
	for i := range 16 {
		group.Go(func() {
			decision, _, err := d.Decide(t.Context(), divided(fmt.Sprint("web", i), 1, apart("app=web")))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case decision.Record.Succeeded():
				on[placement.Text(decision.Clusters)]++
			default:
				waits++
			}
		})
	}
	group.Wait()
	want := map[string]int{"{m0:1}": 1, "{m1:1}": 1, "{m2:1}": 1, "{m3:1}": 1, "{m4:1}": 1, "{m5:1}": 1}
	if diff := cmp.Diff(want, on); diff != "" || waits != 10 {
		t.Errorf("%d wait; placed (-want +got):\n%s", waits, diff)
	}
}

func reported(cluster string, health workv1alpha2.ResourceHealth, raw string) workv1alpha2.AggregatedStatusItem {
	return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: health, Status: &runtime.RawExtension{Raw: []byte(raw)}}
}

// TestReservations: what has to happen for capacity that was reserved for one binding to
// be given to another.
func TestReservations(t *testing.T) {
	on := func(b *workv1alpha2.ResourceBinding, generation int64, replicas int32, items ...workv1alpha2.AggregatedStatusItem) *workv1alpha2.ResourceBinding {
		b = b.DeepCopy()
		b.Generation = generation
		b.Spec.Clusters = nil
		if replicas > 0 {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: replicas}}
		}
		b.Status.AggregatedStatus = items
		return b
	}
	cases := map[string]struct {
		happens  func(d *Decider, b *workv1alpha2.ResourceBinding, clock *clocktesting.FakeClock)
		capacity int64 // for others, of 10
	}{
		"nothing":            {func(*Decider, *workv1alpha2.ResourceBinding, *clocktesting.FakeClock) {}, 4},
		"it was not written": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) { d.Withdraw(b) }, 10},
		"another one was not written": {func(d *Decider, _ *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.Withdraw(divided("other", 1))
		}, 4},
		"it was written, and what followed was not": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.Withdraw(on(b, 2, 6))
		}, 4},
		"it runs, and what followed was not written": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			starts := on(b, 2, 6)
			d.BindingChanged(b, starts)
			more := starts.DeepCopy()
			more.Spec.Replicas = 7
			decide(t, d, more)
			d.Withdraw(more)
			d.BindingChanged(starts, on(b, 2, 6, reported("m1", workv1alpha2.ResourceHealthy, "{}")))
		}, 10},
		"it is scaled down before it runs": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			placed := on(b, 2, 6)
			d.BindingChanged(b, placed)
			placed = placed.DeepCopy()
			placed.Spec.Replicas = 2
			decide(t, d, placed)
		}, 8},
		"the cache shows it": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.BindingChanged(b, on(b, 2, 6))
		}, 4},
		"the cache shows what was before": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) { d.BindingChanged(b, b) }, 4},
		"the cluster reports that it starts": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.BindingChanged(b, on(b, 2, 6, reported("m1", workv1alpha2.ResourceUnhealthy, "{}")))
		}, 4},
		"the cluster reports that it runs": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.BindingChanged(b, on(b, 2, 6, reported("m1", workv1alpha2.ResourceHealthy, "{}")))
		}, 10},
		"another cluster reports that it runs": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.BindingChanged(b, on(b, 2, 6, reported("m2", workv1alpha2.ResourceHealthy, "{}")))
		}, 4},
		"it was placed elsewhere": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.BindingChanged(b, on(b, 2, 0))
		}, 10},
		"somebody scaled it down": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) {
			d.BindingChanged(b, on(b, 2, 1))
		}, 9},
		"it is gone": {func(d *Decider, b *workv1alpha2.ResourceBinding, _ *clocktesting.FakeClock) { d.BindingGone(b) }, 10},
		"a while passes": {func(d *Decider, _ *workv1alpha2.ResourceBinding, clock *clocktesting.FakeClock) {
			clock.Step(timeout - time.Second)
			d.reservations.expire()
		}, 4},
		"too long passes": {func(d *Decider, _ *workv1alpha2.ResourceBinding, clock *clocktesting.FakeClock) {
			clock.Step(timeout)
			d.reservations.expire()
		}, 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			d := New(hubOf(cluster("m1", capacity(10))).Build(), Options{Clock: clock})
			b := divided("web", 6)
			decide(t, d, b)
			d.unschedulable.Add(divided("waits", 9), workv1alpha2.BindingReasonUnschedulable, 0)
			tc.happens(d, b, clock)
			if got := decidertest.Fits(t, d); got != tc.capacity {
				t.Errorf("room for %d, want %d", got, tc.capacity)
			}
			freed := len(d.unschedulable.Due(func(workv1alpha2.Binding, string) bool { return true }))
			if (freed == 1) != (tc.capacity > 4) {
				t.Errorf("%d that wait for room were woken", freed)
			}
		})
	}
}

// TestRequestsThatChange: what is reserved of a cluster follows what the replicas
// ask for, even where their number stays, and ends in nothing.
func TestRequestsThatChange(t *testing.T) {
	d := New(hubOf(cluster("m1", capacity(10)), cluster("m2", capacity(1))).Build(), Options{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	b := divided("web", 3)
	place := func(targets ...workv1alpha2.TargetCluster) int64 {
		decision := placement.Decision{Clusters: targets}
		if !d.reservations.commit(b, &decision, d.reservations.seq) {
			t.Fatal("overtaken by nobody")
		}
		before := b.DeepCopy()
		b.Spec.Clusters = targets
		b.Generation++
		d.BindingChanged(before, b)
		return decidertest.Fits(t, d)
	}
	got := []int64{place(workv1alpha2.TargetCluster{Name: "m1", Replicas: 3})}
	b.Spec.ReplicaRequirements.ResourceRequest[corev1.ResourceCPU] = resource.MustParse("2")
	got = append(got, place(workv1alpha2.TargetCluster{Name: "m1", Replicas: 3}, workv1alpha2.TargetCluster{Name: "m2", Replicas: 1}))
	d.BindingGone(b)
	got = append(got, decidertest.Fits(t, d))
	if diff := cmp.Diff([]int64{8, 4, 11}, got); diff != "" {
		t.Errorf("room for others: with three, with three of twice the size and one more, when it is gone (-want +got):\n%s", diff)
	}
}

// TestWhatIsForgotten: the reservations do not grow with the groups and clusters that
// there ever were, and takes no decision for good that may have been overtaken.
func TestWhatIsForgotten(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	d := New(hubOf(cluster("m1", capacity(1000))).Build(), Options{Clock: clock})
	slow, asOf := divided("slow", 1), d.reservations.seq
	decision, _, err := d.Preview(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		b := divided(fmt.Sprint("web", i), 1, apart(fmt.Sprint("app=", i)))
		decide(t, d, b)
		d.BindingGone(b)
	}
	d.reservations.snapshot(d.reservations.base, true)
	d.reservations.expire()
	got := []any{len(d.reservations.placed) + len(d.reservations.grown), len(d.reservations.sums)}
	d.reservations.expire()
	got = append(got, len(d.reservations.placed)+len(d.reservations.grown), len(d.reservations.sums), d.commit(slow, &decision, asOf))
	if diff := cmp.Diff([]any{21, 0, 0, 0, false}, got); diff != "" {
		t.Errorf("notes, sums; later: notes, sums, a decision as old is committed (-want +got):\n%s", diff)
	}
}

// TestScaling: only what is new is reserved, until the cluster reports news.
func TestScaling(t *testing.T) {
	d := New(hubOf(cluster("m1", capacity(10))).Build(), Options{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	b := divided("web", 3, func(b *workv1alpha2.ResourceBinding) {
		// It runs two, which the cluster counts among what is allocated.
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{reported("m1", workv1alpha2.ResourceHealthy, `{"replicas":2}`)}
	})
	step := func(replicas int32) {
		decision := decide(t, d, b)
		after := b.DeepCopy()
		after.Generation++
		decision.Put(after)
		d.BindingChanged(b, after)
		b = after
		b.Spec.Replicas = replicas
	}
	got := []int64{decidertest.Fits(t, d)}
	step(7) // to three
	got = append(got, decidertest.Fits(t, d))
	step(2) // to seven
	got = append(got, decidertest.Fits(t, d))
	step(2) // back to two
	got = append(got, decidertest.Fits(t, d))
	if diff := cmp.Diff([]int64{10, 9, 5, 10}, got); diff != "" {
		t.Errorf("room for others (-want +got):\n%s", diff)
	}
}

// TestPeersInTheCache: where the reservations know nothing, the cache tells, and the
// newer of the two wins.
func TestPeersInTheCache(t *testing.T) {
	other := divided("other", 1, apart("app=web"), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}}
		b.Generation = 2
	})
	elsewhere := other.DeepCopy()
	elsewhere.Namespace = "else"
	hub := hubOf(cluster("m1", capacity(10)), cluster("m2", capacity(1)), other, elsewhere).Build()
	d := New(hub, Options{})
	place := func() string {
		decision, _, err := d.Preview(t.Context(), divided("web", 1, apart("app=web")))
		if err != nil {
			t.Fatal(err)
		}
		return placement.Text(decision.Clusters)
	}
	got := []string{place()}
	moves := other.DeepCopy()
	moves.Spec.Clusters = nil
	moves.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	decide(t, d, moves)
	got = append(got, place())
	d.Withdraw(moves)
	got = append(got, place())
	if diff := cmp.Diff([]string{"{m2:1}", "{m1:1}", "{m2:1}"}, got); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}
}
