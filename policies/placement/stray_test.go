package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestStray: a divided workload leaves a cluster whose labels no longer say
// what its affinity asks for, and stays where it is otherwise.
func TestStray(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	labelled := func(tier string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}}
	}
	fleet := func(tiers map[string]string) placement.Snapshot {
		var out []*clusterv1alpha1.Cluster
		for name, tier := range tiers {
			c := cluster(name, 100)
			c.Labels = map[string]string{"tier": tier}
			out = append(out, c)
		}
		return placement.NewSnapshot(out)
	}
	gold, tin := labelled("gold"), labelled("tin")
	one := policyv1alpha1.Placement{ClusterAffinity: &gold, ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}
	terms := policyv1alpha1.Placement{ReplicaScheduling: one.ReplicaScheduling, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: gold}, {AffinityName: "second", ClusterAffinity: tin},
	}}
	before := map[string]string{"a": "gold", "b": "gold", "c": "tin"}
	cases := map[string]struct {
		placement policyv1alpha1.Placement
		after     map[string]string
		want      []workv1alpha2.TargetCluster // nil: it stays
	}{
		"nothing changed":                       {placement: one, after: before},
		"another cluster fits, too":             {placement: one, after: map[string]string{"a": "gold", "b": "gold", "c": "gold"}},
		"a target fits no more":                 {placement: one, after: map[string]string{"a": "gold", "b": "tin", "c": "gold"}, want: []workv1alpha2.TargetCluster{on("a", 2), on("c", 2)}},
		"a target fits no more and nothing new": {placement: one, after: map[string]string{"a": "gold", "b": "tin", "c": "tin"}, want: []workv1alpha2.TargetCluster{on("a", 4)}},
		"a target fits another term only":       {placement: terms, after: map[string]string{"a": "gold", "b": "tin", "c": "tin"}, want: []workv1alpha2.TargetCluster{on("a", 4)}},
		"no target fits the term in force":      {placement: terms, after: map[string]string{"a": "none", "b": "none", "c": "tin"}, want: []workv1alpha2.TargetCluster{on("c", 4)}},
		"no target fits and no other does":      {placement: one, after: map[string]string{"a": "none", "b": "none", "c": "tin"}, want: []workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}},
		"no affinity means every cluster":       {placement: policyv1alpha1.Placement{ReplicaScheduling: one.ReplicaScheduling}, after: map[string]string{"a": "x", "b": "y", "c": "z"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding(deployment(4, tc.placement))
			first, _ := placement.Decide(b, placement.Situation{Clusters: fleet(before), Now: now}, placement.Options{})
			b.Spec.Clusters, b.Annotations = first.Clusters, first.Annotations()
			d, changed := placement.Decide(b, placement.Situation{Clusters: fleet(tc.after), Now: now}, placement.Options{})
			if changed != (tc.want != nil) {
				t.Fatalf("changed = %v: %+v", changed, d)
			}
			if !changed {
				return
			}
			if diff := cmp.Diff(tc.want, d.Clusters, cmpopts.EquateEmpty()); diff != "" || d.Why != placement.DueClusterStrayed {
				t.Errorf("because %q, clusters (-want +got):\n%s", d.Why, diff)
			}
		})
	}
}
