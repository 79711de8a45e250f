package placement_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestWhatHasEndedDoesNotRunOnceMore: a Job that has come to its end in a cluster that leaves the fleet is not placed in
// another for it, neither at once nor later, until somebody wants it otherwise. The rest of it runs on.
func TestWhatHasEndedDoesNotRunOnceMore(t *testing.T) {
	const complete, runs = `{"conditions":[{"type":"Complete","status":"True"}]}`, `{"active":1}`
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	upTo := func(n int) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: n, MaxGroups: n}}}
	}
	anywhere := policyv1alpha1.Placement{}
	byWeight := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})}
	named := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}}
	ofOne := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}}
	edited := func(p policyv1alpha1.Placement) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &p }
	}
	grows := func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 6 }
	shrinks := func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 1 }
	rebalanced := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: now.Add(time.Minute)}
	}
	for name, tc := range map[string]struct {
		placement  policyv1alpha1.Placement
		says       map[string]string
		replicas   int32
		rooms, was string
		leaves     string
		want       string // then, and when they have left
		then       func(*workv1alpha2.ResourceBinding)
		after      string // what comes of that
	}{
		"it is complete in its one cluster":                   {placement: upTo(1), says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", leaves: "a"},
		"it runs there":                                       {placement: upTo(1), says: map[string]string{"a": runs}, replicas: 2, rooms: "a:9 b:9", was: "a:2", leaves: "a", want: "b:2"},
		"it is complete in one of two":                        {placement: upTo(2), says: map[string]string{"a": complete, "b": runs}, replicas: 2, rooms: "a:9 b:9 c:9", was: "a:2 b:2", leaves: "a", want: "b:2"},
		"it is complete in one of two, and both leave":        {placement: upTo(2), says: map[string]string{"a": complete, "b": runs}, replicas: 2, rooms: "a:9 b:9 c:9 d:9", was: "a:2 b:2", leaves: "a b", want: "c:2"},
		"it runs wherever it may":                             {placement: anywhere, says: map[string]string{"a": complete, "b": runs}, replicas: 2, rooms: "a:9 b:9", was: "a:2 b:2", leaves: "a", want: "b:2"},
		"none is left that it may run in":                     {placement: ofOne, says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", leaves: "a"},
		"a part is complete":                                  {placement: byWeight, says: map[string]string{"a": complete, "b": runs}, replicas: 4, rooms: "a:9 b:9 c:9", was: "a:2 b:2", leaves: "a", want: "b:2"},
		"a part is complete, divided by fixed weights":        {placement: policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}, says: map[string]string{"a": complete, "b": runs, "c": runs}, replicas: 6, rooms: "a:9 b:9 c:9", was: "a:2 b:2 c:2", leaves: "a", want: "b:2 c:2"},
		"all parts are, and all leave":                        {placement: byWeight, says: map[string]string{"a": complete, "b": complete}, replicas: 4, rooms: "a:9 b:9 c:9", was: "a:2 b:2", leaves: "a b"},
		"a part runs there":                                   {placement: byWeight, says: map[string]string{"a": runs, "b": complete}, replicas: 4, rooms: "a:9 b:9 c:9", was: "a:2 b:2", leaves: "a", want: "b:2 c:2"},
		"it has left, and users have it run elsewhere":        {placement: upTo(1), says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", leaves: "a", then: edited(named), after: "b:2"},
		"it has left, and somebody has it placed anew":        {placement: upTo(1), says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", leaves: "a", then: rebalanced, after: "b:2"},
		"a part has left, and users want more of it":          {placement: byWeight, says: map[string]string{"a": complete, "b": runs}, replicas: 4, rooms: "a:9 b:9", was: "a:2 b:2", leaves: "a", want: "b:2", then: grows, after: "b:4"},
		"a part has left, and users want less of it":          {placement: byWeight, says: map[string]string{"a": complete, "b": runs}, replicas: 4, rooms: "a:9 b:9", was: "a:2 b:2", leaves: "a", want: "b:2", then: shrinks, after: "b:1"},
		"it is placed elsewhere by its users while it leaves": {placement: upTo(1), says: map[string]string{"a": complete}, replicas: 2, rooms: "a:9 b:9", was: "a:2", leaves: "a", want: "b:2", then: nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(tc.replicas, tc.placement), tc.rooms, tc.was, now)
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
			for cluster, status := range tc.says {
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Status: &runtime.RawExtension{Raw: []byte(status)}})
			}
			if strings.HasSuffix(name, "while it leaves") {
				edited(named)(b)
			}
			fleet := func(leaves, gone string) placement.Situation {
				var all []*clusterv1alpha1.Cluster
				evictFleet(tc.rooms, "", now).Each(func(c *clusterv1alpha1.Cluster) bool {
					c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "batch/v1", Resources: []clusterv1alpha1.APIResource{{Name: "jobs", Kind: "Job"}}}}
					if slices.Contains(strings.Fields(leaves), c.Name) {
						c.DeletionTimestamp = &metav1.Time{Time: now}
					}
					if !slices.Contains(strings.Fields(gone), c.Name) {
						all = append(all, c)
					}
					return true
				})
				return placement.Situation{Clusters: placement.NewSnapshot(all), Now: now}
			}
			settle := func(step string, in placement.Situation, want string) {
				t.Helper()
				d, changed := placement.Decide(b, in, placement.Options{})
				if changed {
					d.Put(b)
				}
				if diff := cmp.Diff(targets(want), b.Spec.Clusters, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", step, diff)
				}
				b.Status.AggregatedStatus = slices.DeleteFunc(b.Status.AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
					return !strings.Contains(want, i.ClusterName)
				})
				if again, changed := placement.Decide(b, in, placement.Options{}); changed {
					t.Fatalf("%s: decided twice: %+v", step, again)
				}
				if why, due := placement.Due(b, in.Clusters); due && why != placement.DueAlways {
					t.Errorf("%s: due: %s", step, why)
				}
				if !placement.Answered(b) {
					t.Errorf("%s: it is not answered", step)
				}
			}
			settle("they leave", fleet(tc.leaves, ""), tc.want)
			settle("they are gone", fleet("", tc.leaves), tc.want)
			if tc.then != nil {
				tc.then(b)
				settle("users have another wish", fleet("", tc.leaves), tc.after)
			}
		})
	}
}
