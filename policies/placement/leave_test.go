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

// TestUnfinished says when a cluster is left.
func TestUnfinished(t *testing.T) {
	ofA, ofStaying := moved("a", "b is healthy", "a", "d"), moved("a", "one of d, e is healthy", "a", "d", "e")
	atOnce := ofA
	atOnce.PurgeMode = policyv1alpha1.PurgeModeDirectly
	cases := map[string]struct {
		task  workv1alpha2.GracefulEvictionTask
		runs  string // where it is placed
		holds string // which clusters have a Work
		ready string // and a healthy copy
		// says is what the policy says of clusters that are left.
		says policyv1alpha1.PurgeMode
		ends bool
	}{
		"refused, suspended or not healthy yet":           {task: ofA, runs: "b", holds: "a b"},
		"not even sent":                                   {task: ofA, runs: "b", holds: "a"},
		"healthy elsewhere":                               {task: ofA, runs: "b", holds: "a b", ready: "b", ends: true},
		"one of two that replace it":                      {task: ofA, runs: "b c", holds: "a b c", ready: "b"},
		"both of them":                                    {task: ofA, runs: "b c", holds: "a b c", ready: "b c", ends: true},
		"one that ran it before is ill for other reasons": {task: ofA, runs: "b d", holds: "a b d", ready: "b", ends: true},
		"what stays does not have it":                     {task: ofA, runs: "d", holds: "a d"},
		"what stays has it":                               {task: ofA, runs: "d", holds: "a d", ready: "d", ends: true},
		"one of two that stay has it":                     {task: ofStaying, runs: "d e", holds: "a d e", ready: "e", ends: true},
		"there is no place for it":                        {task: ofA, runs: "", holds: "a"},
		"what was kept is gone":                           {task: ofA, runs: "b", holds: "b", ends: true},
		"the policy says Directly by now":                 {task: ofA, runs: "b", holds: "a b", says: policyv1alpha1.PurgeModeDirectly, ends: true},
		"the policy says Gracefully":                      {task: ofA, runs: "b", holds: "a b", says: policyv1alpha1.PurgeModeGracefully},
		"left first, and still there":                     {task: atOnce, runs: "b", holds: "a", ready: "b", says: policyv1alpha1.PurgeModeDirectly},
		"left first, and gone":                            {task: atOnce, runs: "b", says: policyv1alpha1.PurgeModeDirectly, ends: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := func(list string) func(string) bool {
				return func(cluster string) bool { return strings.Contains(list, cluster) }
			}
			spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets(tc.runs), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{tc.task}}
			if tc.says != "" {
				spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: tc.says}}
			}
			tasks, ended, _ := placement.Ending{Holds: in(tc.holds), Ready: in(tc.ready)}.Of(spec)
			if got := len(ended) == 1 && len(tasks) == 0; got != tc.ends || len(ended)+len(tasks) != 1 {
				t.Errorf("goes on: %v, ended: %v; want the end: %t", tasks, ended, tc.ends)
			}
		})
	}
}

func TestKept(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{
		Clusters: targets("b c d e f g h"),
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{moved("a", "", "a"), moved("x", "", "b", "c", "d", "e", "f"), moved("y", "", "b", "c", "d", "e", "f", "g"),
			moved("z", "", "b", "c", "d", "e", "f", "g", "h", "z"), {FromCluster: "w", PurgeMode: policyv1alpha1.PurgeModeNever},
		},
	}
	var got []string
	for _, k := range placement.KeptBy(spec) {
		got = append(got, k.String())
	}
	want := []string{"kept in a until b, c, d, e, f and 2 more are healthy", "kept in x until g, h are healthy", "kept in y until h is healthy", "kept in z until one of b, c, d, e, f and 2 more is healthy", "kept in w until its eviction task says suppressDeletion: false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
