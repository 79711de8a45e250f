package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestStateGoesAlong: what is moved takes along what its policy wants, and is not moved without.
func TestStateGoesAlong(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	for name, tc := range map[string]struct {
		reported string
		off      bool // the gate
		was      string
		want     string // where it runs then; nothing is written where it is empty
		state    map[string]string
		stays    string
	}{
		"the value goes along":              {reported: `{"id":"7"}`, was: "a:2", want: "b:2", state: map[string]string{"app.io/id": "7"}},
		"there is none":                     {reported: `{}`, was: "a:2", want: "a:2", stays: "It stays in a: its state cannot be carried over: {.id} of the status in a, for the label app.io/id: id is not found."},
		"nobody wants it":                   {reported: `{}`, off: true, was: "a:2", want: "b:2"},
		"there is none where it must leave": {reported: `{}`, was: "b:2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(2, one), "a:9 b:9", tc.was, now)
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
				PurgeMode:         policyv1alpha1.PurgeModeDirectly,
				StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "app.io/id", JSONPath: "{.id}"}}},
			}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: b.Spec.Clusters[0].Name, Status: &runtime.RawExtension{Raw: []byte(tc.reported)}}}
			in := placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now), Now: now}
			opts := placement.Options{Failover: failover.Rules{Taints: true, State: !tc.off}}
			d, changed := placement.Decide(b, in, opts)
			if changed != (tc.want != "") {
				t.Fatalf("changed = %t: %+v", changed, d)
			}
			if !changed {
				return
			}
			tasks := ""
			var state map[string]string
			for i := range d.Evictions {
				tasks, state = tasksOf(d.Evictions), d.Evictions[i].PreservedLabelState
			}
			if diff := cmp.Diff(tc.state, state); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(outcomeOf(targets(tc.want), tasks, tc.stays), outcomeOf(d.Clusters, tasks, staysOf(d))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, task := range d.Evictions {
				if diff := cmp.Diff(tc.state != nil, len(task.ClustersBeforeFailover) > 0); diff != "" {
					t.Errorf("it says where it ran before, so that no copy there inherits: %v", task.ClustersBeforeFailover)
				}
			}
			d.Put(b)
			if again, changed := placement.Decide(b, in, opts); changed {
				t.Errorf("decided twice: %+v", again)
			}
			b.Status.AggregatedStatus[0].Status = nil
			if again, changed := placement.Decide(b, in, opts); changed {
				t.Errorf("decided anew as it reads otherwise: %+v", again.Record.Stays)
			}
		})
	}
}
