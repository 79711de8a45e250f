package eviction_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

func moved(from, until string, before ...string) workv1alpha2.GracefulEvictionTask {
	return workv1alpha2.GracefulEvictionTask{
		FromCluster: from, PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "Moved", Producer: "Scheduler",
		Message: "kept until " + until, ClustersBeforeFailover: before,
	}
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
			tasks, ended, _ := eviction.Ending{Holds: in(tc.holds), Ready: in(tc.ready)}.Of(spec)
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
	for _, k := range eviction.KeptBy(spec) {
		got = append(got, k.String())
	}
	want := []string{"kept in a until b, c, d, e, f and 2 more are healthy", "kept in x until g, h are healthy", "kept in y until h is healthy", "kept in z until one of b, c, d, e, f and 2 more is healthy", "kept in w until its eviction task says suppressDeletion: false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// targets reads "a b".
func targets(list string) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for _, name := range strings.Fields(list) {
		out = append(out, workv1alpha2.TargetCluster{Name: name})
	}
	return out
}
