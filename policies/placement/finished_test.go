package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestWhatIsFinishedStays: a Job that has come to its end in a cluster is not moved off it, as it would run once more;
// the rest of it is. Who changes where it may run is followed.
func TestWhatIsFinishedStays(t *testing.T) {
	const complete, failed, runs = `{"conditions":[{"type":"Complete","status":"True"}]}`, `{"conditions":[{"type":"Failed","status":"True"}]}`, `{"active":1}`
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	duplicated := policyv1alpha1.Placement{}
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	byWeight := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})}
	named := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}}
	for name, tc := range map[string]struct {
		placement  policyv1alpha1.Placement
		says       map[string]string
		replicas   int32
		rooms, was string
		tainted    string
		drained    bool
		then       *policyv1alpha1.Placement // what users have it be now
		want       string                    // empty: nothing is decided
		tasks      string
	}{
		"it is complete where a taint moves what runs": {placement: one, says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a"},
		"it is complete where a drain does":            {placement: one, says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", drained: true},
		"it failed for good there":                     {placement: one, says: map[string]string{"a": failed}, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a"},
		"it runs there":                                {placement: one, says: map[string]string{"a": runs}, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", want: "b:2", tasks: "a Gracefully"},
		"nothing is said of it":                        {placement: one, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", want: "b:2", tasks: "a Gracefully"},
		"it is complete in one of two that are left":   {placement: duplicated, says: map[string]string{"a": complete, "b": runs}, replicas: 2, rooms: "a:9 b:9 c:9", was: "a:2 b:2 c:2", tainted: "a b", want: "a:2 c:2", tasks: "b Gracefully"},
		"a part is complete, and the rest is moved":    {placement: byWeight, says: map[string]string{"a": complete}, replicas: 4, rooms: "a:9 b:9 c:9", was: "a:2 b:2", tainted: "b", want: "a:2 c:2", tasks: "b Gracefully"},
		"all of it is complete":                        {placement: duplicated, says: map[string]string{"a": complete, "b": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2 b:2", tainted: "a b"},
		"users have it run elsewhere":                  {placement: one, says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", then: &named, want: "b:2", tasks: "a Gracefully of Scheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(tc.replicas, tc.placement), tc.rooms, tc.was, now)
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
			for cluster, status := range tc.says {
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Status: &runtime.RawExtension{Raw: []byte(status)}})
			}
			if tc.then != nil {
				b.Spec.Placement = tc.then
			}
			in := placement.Situation{Clusters: evictFleet(tc.rooms, tc.tainted, now), Now: now}
			in.Clusters.Each(func(c *clusterv1alpha1.Cluster) bool {
				c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "batch/v1", Resources: []clusterv1alpha1.APIResource{{Name: "jobs", Kind: "Job"}}}}
				if tc.drained && len(c.Spec.Taints) > 0 {
					c.Spec.Taints = []corev1.Taint{failover.DrainTaint()}
				}
				return true
			})
			d, changed := placement.Decide(b, in, placement.Options{Failover: failover.Rules{Taints: true}})
			if changed != (tc.want != "") {
				t.Fatalf("changed = %t: %+v", changed, d)
			}
			if !changed {
				return
			}
			if diff := cmp.Diff(outcomeOf(targets(tc.want), tc.tasks, ""), outcomeOf(d.Clusters, tasksOf(d.Evictions), staysOf(d))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
