package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestAMoveThatLeadsNowhereIsTakenBack: what was moved as a whole to a cluster that has no room for all of it would be kept in both for ever.
// It goes back to where its old copy is healthy, once that cluster is well and the grace is over; what is divided is left alone.
func TestAMoveThatLeadsNowhereIsTakenBack(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	byRoom := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)}
	for name, tc := range map[string]struct {
		placement  policyv1alpha1.Placement
		west, east string
		after      time.Duration
		rooms      string // where the cluster is gone that it would go back to
		want       string
		tasks      string
		next       time.Duration
	}{
		"after its grace":              {placement: oneOf(), after: 10 * time.Minute, want: "a:3", tasks: "b Gracefully x3 of Scheduler"},
		"not before":                   {placement: oneOf(), after: 9 * time.Minute, next: time.Minute},
		"not while it is healthy":      {placement: oneOf(), after: time.Hour, east: "Healthy"},
		"not to what is not healthy":   {placement: oneOf(), after: time.Hour, west: "Unhealthy"},
		"not to where it cannot be":    {placement: named("b"), after: time.Hour},
		"not what is divided by room":  {placement: byRoom, after: time.Hour},
		"not to a cluster that is off": {placement: oneOf(), after: time.Hour, rooms: "b:1 c:0"},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(3, oneOf()), "a:9 b:1 c:0", "a:3", noon)
			opts := placement.Options{Failover: failover.Rules{Taints: true}}
			d, _ := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:1 c:0", "a", noon), Now: noon}, opts)
			d.Put(b)
			if diff := cmp.Diff(targets("b:3"), b.Spec.Clusters); diff != "" {
				t.Fatalf("moved to (-want +got):\n%s", diff)
			}
			b.Spec.Placement, b.Annotations[policyv1alpha1.PolicyPlacementAnnotation] = &tc.placement, placement.AppliedPlacement(&tc.placement)
			health := func(is, or string) workv1alpha2.ResourceHealth {
				if is == "" {
					return workv1alpha2.ResourceHealth(or)
				}
				return workv1alpha2.ResourceHealth(is)
			}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Health: health(tc.west, "Healthy")}, {ClusterName: "b", Health: health(tc.east, "Unhealthy")}}
			rooms := "a:9 b:1 c:0"
			if tc.rooms != "" {
				rooms = tc.rooms
			}
			in := placement.Situation{Clusters: evictFleet(rooms, "", noon), Now: noon.Add(tc.after)}
			d, changed := placement.Decide(b, in, opts)
			if changed != (tc.want != "") {
				t.Fatalf("changed = %t: %+v", changed, d)
			}
			if !changed {
				var next time.Duration
				if !d.Next.IsZero() {
					next = d.Next.Sub(in.Now)
				}
				if next != tc.next {
					t.Errorf("again in %s, want %s", next, tc.next)
				}
				return
			}
			if diff := cmp.Diff(outcomeOf(targets(tc.want), tc.tasks, ""), outcomeOf(d.Clusters, tasksOf(d.Evictions), staysOf(d))); diff != "" || d.Why != placement.DueUndone {
				t.Errorf("because %q (-want +got):\n%s", d.Why, diff)
			}
			d.Put(b)
			if again, changed := placement.Decide(b, in, opts); changed {
				t.Errorf("decided twice: %+v", again)
			}
		})
	}
}

// named is a placement in the one cluster of a name.
func named(cluster string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
}
