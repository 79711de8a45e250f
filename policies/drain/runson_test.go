package drain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestAPlanSaysWhatChanges: what runs as a whole in other clusters already only leaves, and what has not begun needs nothing to be done.
func TestAPlanSaysWhatChanges(t *testing.T) {
	everywhere := func(b *workv1alpha2.ResourceBinding) {
		record, _ := placement.RecordOf(b)
		placement.Decision{
			Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 4}, {Name: "west", Replicas: 4}}, AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement), Record: record,
		}.Put(b)
	}
	begun := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters[0].Name = "west"
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", Producer: "Drain", Reason: "TaintUntolerated"}}
	}
	const next = "see what keeps that from it: flotilla explain deployment/web -n shop; to give the old copy up: " + giveUp
	for name, tc := range map[string]struct {
		binding workv1alpha2.Binding
		runsOn  bool
		next    string
	}{
		"it runs as a whole in both": {binding: running("web", 4, policyv1alpha1.Placement{}, everywhere), runsOn: true},
		"it is to run elsewhere":     {binding: running("web", 4, divided())},
		"others are to run more":     {binding: running("web", 8, divided(), everywhere)},
		"it is on its way already":   {binding: running("web", 4, divided(), begun), next: next},
	} {
		t.Run(name, func(t *testing.T) {
			rows := drain.Plan(drain.Input{
				Cluster: "east", Clusters: []*clusterv1alpha1.Cluster{cluster("east", 9), cluster("west", 9)}, Bindings: []workv1alpha2.Binding{tc.binding}, Now: noon,
			})
			if len(rows) != 1 || rows[0].State != drain.Leaves {
				t.Fatalf("%+v", rows)
			}
			if diff := cmp.Diff(tc.next, rows[0].Next); diff != "" || rows[0].RunsOn != tc.runsOn {
				t.Errorf("it runs on: %t, want %t; next (-want +got):\n%s", rows[0].RunsOn, tc.runsOn, diff)
			}
		})
	}
}
