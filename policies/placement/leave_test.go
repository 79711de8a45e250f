package placement_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

func moved(from, until string, before ...string) workv1alpha2.GracefulEvictionTask {
	return workv1alpha2.GracefulEvictionTask{
		FromCluster: from, PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "Moved", Producer: "Scheduler",
		Message: "kept until " + until, ClustersBeforeFailover: before,
	}
}

// TestLeaving says what becomes of the clusters of a placement that changes.
func TestLeaving(t *testing.T) {
	duplicated, parts := policyv1alpha1.Placement{}, policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}
	foreign := workv1alpha2.GracefulEvictionTask{FromCluster: "x", Reason: "TaintUntolerated", Producer: "TaintManager"}
	directly := &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}}
	atOnce := moved("a", "", "a")
	atOnce.PurgeMode, atOnce.Message = policyv1alpha1.PurgeModeDirectly, "left before it starts elsewhere"
	cases := map[string]struct {
		placement policyv1alpha1.Placement
		failover  *policyv1alpha1.FailoverBehavior
		replicas  int32
		// was is where it runs, with its tasks; want are the clusters that it is to run in.
		was   []workv1alpha2.TargetCluster
		tasks []workv1alpha2.GracefulEvictionTask
		want  string
		out   []workv1alpha2.GracefulEvictionTask
	}{
		"moved: kept until the other is healthy": {
			placement: duplicated, was: targets("a"), want: "b", out: []workv1alpha2.GracefulEvictionTask{moved("a", "b is healthy", "a")},
		},
		"one cluster fewer: what stays need not have it yet": {
			placement: duplicated, was: targets("a b"), want: "b", out: []workv1alpha2.GracefulEvictionTask{moved("a", "b is healthy", "a", "b")},
		},
		"two of three stay: one of them is enough": {
			placement: duplicated, was: targets("a b c"), want: "b c", out: []workv1alpha2.GracefulEvictionTask{moved("a", "one of b, c is healthy", "a", "b", "c")},
		},
		"one cluster fewer, and the policy says Directly": {placement: duplicated, failover: directly, was: targets("a b"), want: "b"},
		"one cluster more": {placement: duplicated, was: targets("a"), want: "a b"},
		"one of two is moved: what stays is not waited for": {
			placement: duplicated, was: targets("a b"), want: "b c", out: []workv1alpha2.GracefulEvictionTask{moved("a", "c is healthy", "a", "b")},
		},
		"moved on before it arrived": {
			placement: duplicated, was: targets("b"), tasks: []workv1alpha2.GracefulEvictionTask{moved("a", "b is healthy", "a")}, want: "c",
			out: []workv1alpha2.GracefulEvictionTask{moved("a", "c is healthy", "a"), moved("b", "c is healthy", "b")},
		},
		"moved back before it arrived": {
			placement: duplicated, was: targets("b"), tasks: []workv1alpha2.GracefulEvictionTask{moved("a", "b is healthy", "a"), foreign}, want: "a",
			out: []workv1alpha2.GracefulEvictionTask{foreign, moved("b", "a is healthy", "b")},
		},
		"to nowhere: it stays": {placement: duplicated, was: targets("a"), want: "none"},
		"to nowhere, half-way": {
			placement: duplicated, was: targets("b"), tasks: []workv1alpha2.GracefulEvictionTask{moved("a", "b is healthy", "a")}, want: "none",
			out: []workv1alpha2.GracefulEvictionTask{moved("a", "b is healthy", "a")},
		},
		"off a cluster that leaves the fleet": {placement: duplicated, was: targets("gone"), want: "b"},
		"a part taken over by one that stays": {
			placement: parts, replicas: 4, was: targets("a:2 b:2"), want: "b", out: []workv1alpha2.GracefulEvictionTask{counted(moved("a", "b is healthy", "a"), 2)},
		},
		"fewer replicas in fewer clusters": {
			placement: parts, replicas: 2, was: targets("a:2 b:2"), want: "b", out: []workv1alpha2.GracefulEvictionTask{counted(moved("a", "b is healthy", "a", "b"), 2)},
		},
		"the policy says Directly": {placement: duplicated, failover: directly, was: targets("a"), want: "b", out: []workv1alpha2.GracefulEvictionTask{atOnce}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := deployment(tc.replicas, tc.placement)
			if tc.replicas == 0 {
				spec.ReplicaRequirements = nil
			}
			spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: strings.Fields(tc.want)}
			spec.Clusters, spec.GracefulEvictionTasks, spec.Failover = tc.was, tc.tasks, tc.failover
			b := binding(spec)
			now := metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			in := placement.Situation{Clusters: placement.NewSnapshot(leaveFleet(now)), Now: now.Time}
			d, changed := placement.Decide(b, in, placement.Options{})
			if !changed {
				t.Fatal("nothing is decided")
			}
			for i := range d.Evictions {
				if at := d.Evictions[i].CreationTimestamp; at != nil && !at.Equal(&now) {
					t.Errorf("made at %v", at)
				}
				d.Evictions[i].CreationTimestamp = nil
			}
			if diff := cmp.Diff(tc.out, d.Evictions); diff != "" {
				t.Errorf("evictions (-want +got):\n%s", diff)
			}
			d.Put(b)
			if again, changed := placement.Decide(b, in, placement.Options{}); changed {
				t.Errorf("decided twice: %+v", again)
			}
		})
	}
}

func counted(task workv1alpha2.GracefulEvictionTask, replicas int32) workv1alpha2.GracefulEvictionTask {
	task.Replicas = &replicas
	return task
}

func leaveFleet(now metav1.Time) []*clusterv1alpha1.Cluster {
	out := []*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 10), cluster("c", 10), cluster("gone", 10)}
	out[3].DeletionTimestamp = &now
	return out
}

// targets reads "a:2 b".
func targets(list string) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for _, part := range strings.Fields(list) {
		name, count, _ := strings.Cut(part, ":")
		n, _ := strconv.Atoi(count)
		out = append(out, on(name, int32(n)))
	}
	return out
}
