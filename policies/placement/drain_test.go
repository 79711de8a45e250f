package placement_test

import (
	order "cmp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// drainFleet has the clusters a and b, of which a is drained or not.
func drainFleet(drained bool) placement.Snapshot {
	var out []*clusterv1alpha1.Cluster
	for _, name := range []string{"a", "b"} {
		out = append(out, cluster(name, 9, func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue})
			if name == "a" && drained {
				c.Spec.Taints = []corev1.Taint{failover.DrainTaint()}
			}
		}))
	}
	return placement.NewSnapshot(out)
}

// TestADrainAndBack: what is moved off a drained cluster goes gracefully, unless its policy wants never two copies at once, is remembered, stays where it is when the drain ends, and is brought back by a
// rebalance, whether it has left or not.
func TestADrainAndBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, purge := range []policyv1alpha1.PurgeMode{"", policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeGracefully} {
		for _, left := range []bool{true, false} {
			both := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}
			b := placedOn(t, deployment(4, both), "a:9 b:9", "a:2 b:2", now)
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: purge}}
			decide := func(drained bool, at time.Time, want string, drainedFrom ...string) {
				t.Helper()
				d, changed := placement.Decide(b, placement.Situation{Clusters: drainFleet(drained), Now: at}, placement.Options{})
				if !changed {
					t.Fatal("nothing is decided")
				}
				if diff := cmp.Diff(targets(want), d.Clusters); diff != "" {
					t.Fatalf("clusters (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(drainedFrom, d.Record.Drained); diff != "" {
					t.Fatalf("drained (-want +got):\n%s", diff)
				}
				d.Put(b)
			}
			decide(true, now, "b:4", "a")
			if got, want := tasksOf(b.Spec.GracefulEvictionTasks), "a "+string(order.Or(purge, policyv1alpha1.PurgeModeGracefully))+" of Drain"; got != want {
				t.Fatalf("tasks %q", got)
			}
			if left {
				b.Spec.GracefulEvictionTasks = nil
			}
			if d, changed := placement.Decide(b, placement.Situation{Clusters: drainFleet(false), Now: now}, placement.Options{}); changed {
				t.Fatalf("it returns by itself: %+v", d)
			}
			b.Spec.RescheduleTriggeredAt = ptr.To(metav1.NewTime(now.Add(time.Minute)))
			decide(true, now.Add(time.Minute), "b:4", "a") // asked for too early: still to be brought back
			b.Spec.RescheduleTriggeredAt = ptr.To(metav1.NewTime(now.Add(2 * time.Minute)))
			decide(false, now.Add(2*time.Minute), "a:2 b:2")
			if len(b.Spec.GracefulEvictionTasks) > 0 {
				t.Errorf("it is back, and is to leave: %+v", b.Spec.GracefulEvictionTasks)
			}
		}
	}
}

// TestADrainTakesItsTime: the grace of a task takes nothing off a drained cluster, although some of
// what replaces it does well.
func TestADrainTakesItsTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: "a", Reason: workv1alpha2.EvictionReasonTaintUntolerated, Producer: workv1alpha2.EvictionProducerDrain,
		CreationTimestamp: ptr.To(metav1.NewTime(now.Add(-time.Hour))),
	}
	for _, tc := range []struct {
		name, ready string
		healthy     bool
		ends        bool
	}{
		{"none is ready", "", true, false},
		{"one of two is", "b", true, false},
		{"both are", "b c", true, true},
		{"what is left is ill, in part at least, and so are others", "b", false, false},
	} {
		ready := map[string]bool{}
		for _, target := range targets(tc.ready) {
			ready[target.Name] = true
		}
		spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets("b c"), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task}}
		_, ended, _ := eviction.Ending{
			HasWork: func(string) bool { return true }, Ready: func(name string) bool { return ready[name] },
			Serves: func(string, bool) bool { return tc.healthy }, Gone: func(string) bool { return false }, Scheduled: true, Now: now,
		}.Of(spec)
		if got := len(ended) > 0; got != tc.ends {
			t.Errorf("%s: ended = %v", tc.name, ended)
		}
	}
}

// TestADrainLeavesOthersGently: a cluster that is left together with one that is drained, as the policy does not mean it
// any more, keeps its copy until all is healthy elsewhere.
func TestADrainLeavesOthersGently(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p := policyv1alpha1.Placement{
		ClusterAffinity:   &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"in": "use"}}},
		ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil),
	}
	b := binding(deployment(4, p))
	placement.Decision{
		Clusters: targets("a:2 b:2"), AppliedPlacement: placement.AppliedPlacement(&p),
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Message: workv1alpha2.SuccessfulSchedulingMessage, At: metav1.NewTime(now.Add(-time.Hour))},
	}.Put(b)
	var clusters []*clusterv1alpha1.Cluster
	for _, name := range []string{"a", "b", "c"} {
		clusters = append(clusters, cluster(name, 9, func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue})
			if name != "b" {
				c.Labels["in"] = "use"
			}
			if name == "a" {
				c.Spec.Taints = []corev1.Taint{failover.DrainTaint()}
			}
		}))
	}
	d, changed := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot(clusters), Now: now}, placement.Options{})
	if got := tasksOf(d.Evictions); !changed || got != "a Gracefully of Drain, b Gracefully of Drain" {
		t.Errorf("%t, %q, %v", changed, got, d.Clusters)
	}
	if diff := cmp.Diff([]string{"a"}, d.Record.Drained); diff != "" {
		t.Errorf("drained (-want +got):\n%s", diff)
	}
}
