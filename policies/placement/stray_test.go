package placement_test

import (
	"strings"
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

// TestDeserted: what lost all its clusters by their labels stays there when it is
// scaled, or when one of them leaves, and that is reported once.
func TestDeserted(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	affinity := policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	in := func(tier string, names ...string) placement.Situation {
		var out []*clusterv1alpha1.Cluster
		for _, name := range names {
			name, leaves := strings.CutPrefix(name, "leaving ")
			out = append(out, cluster(name, 100, func(c *clusterv1alpha1.Cluster) {
				if c.Labels["tier"] = tier; leaves {
					c.DeletionTimestamp = &metav1.Time{Time: now}
				}
			}))
		}
		return placement.Situation{Clusters: placement.NewSnapshot(out), Now: now}
	}
	cases := map[string]struct {
		edit  func(*workv1alpha2.ResourceBindingSpec)
		after placement.Situation
		want  []workv1alpha2.TargetCluster
	}{
		"nothing else":           {func(*workv1alpha2.ResourceBindingSpec) {}, in("none", "a", "b"), []workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}},
		"scaled up":              {func(s *workv1alpha2.ResourceBindingSpec) { s.Replicas = 9 }, in("none", "a", "b"), []workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}},
		"scaled down":            {func(s *workv1alpha2.ResourceBindingSpec) { s.Replicas = 1 }, in("none", "a", "b"), []workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}},
		"a cluster leaves":       {func(*workv1alpha2.ResourceBindingSpec) {}, in("none", "a", "leaving b"), []workv1alpha2.TargetCluster{on("a", 2)}},
		"a cluster is not known": {func(*workv1alpha2.ResourceBindingSpec) {}, in("none", "a"), []workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}},
		"another affinity": {func(s *workv1alpha2.ResourceBindingSpec) {
			s.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"}}
		}, in("none", "a", "b"), []workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding(deployment(4, policyv1alpha1.Placement{ClusterAffinity: &affinity, ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}))
			// A rebalance that was answered is not asked for again by a failure, even
			// while the status does not show the answer.
			b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: now.Truncate(time.Second)}
			for _, step := range []placement.Situation{in("gold", "a", "b"), in("none", "a", "b")} {
				d, changed := placement.Decide(b, step, placement.Options{})
				if !changed {
					t.Fatal("nothing to write")
				}
				d.Put(b)
			}
			tc.edit(&b.Spec)
			if d, changed := placement.Decide(b, tc.after, placement.Options{}); changed {
				d.Put(b)
			}
			if diff := cmp.Diff(tc.want, b.Spec.Clusters, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if d, changed := placement.Decide(b, tc.after, placement.Options{}); changed {
				t.Errorf("decided again: %+v", d)
			}
		})
	}
}

// TestDesertedAsAWhole: the same goes for what every cluster gets as a whole: the last label that goes takes nothing
// with it, and once a cluster fits again the others are left.
func TestDesertedAsAWhole(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	affinity := policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	in := func(a, b string) placement.Situation {
		return placement.Situation{Now: now, Clusters: placement.NewSnapshot([]*clusterv1alpha1.Cluster{
			cluster("a", 100, func(c *clusterv1alpha1.Cluster) { c.Labels["tier"] = a }), cluster("b", 100, func(c *clusterv1alpha1.Cluster) { c.Labels["tier"] = b }),
		})}
	}
	for name, replicas := range map[string]int32{"replicas in each": 2, "no replicas": 0} {
		t.Run(name, func(t *testing.T) {
			b := binding(deployment(replicas, policyv1alpha1.Placement{ClusterAffinity: &affinity}))
			for i, step := range []struct {
				in   placement.Situation
				want []string
			}{
				{in("gold", "gold"), []string{"a", "b"}},
				{in("none", "none"), []string{"a", "b"}}, // all at once
				{in("none", "gold"), []string{"b"}},
				{in("none", "none"), []string{"b"}}, // the last
				{in("gold", "none"), []string{"a"}},
			} {
				if d, changed := placement.Decide(b, step.in, placement.Options{}); changed {
					d.Put(b)
				}
				var got []string
				for _, target := range b.Spec.Clusters {
					got = append(got, target.Name)
				}
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
				if d, changed := placement.Decide(b, step.in, placement.Options{}); changed {
					t.Errorf("step %d: decided again: %+v", i, d)
				}
			}
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"}}
			d, changed := placement.Decide(b, in("none", "none"), placement.Options{})
			if !changed || len(d.Clusters) != 1 || d.Clusters[0].Name != "a" || d.Record.Reason != workv1alpha2.BindingReasonNoClusterFit {
				t.Errorf("the policy names a cluster that there is not: %+v", d)
			}
		})
	}
}

// TestRefusedTwice: a refusal that differs from the last one in its numbers alone
// is not written again, one by another quota is.
func TestRefusedTwice(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	say := func(quota, used string) string {
		return "FederatedResourceQuota shop/" + quota + " is exceeded: cpu: " + used + " of 10 are used, 2 more are asked for"
	}
	b := binding(deployment(4, policyv1alpha1.Placement{}, on("a", 4)))
	d, changed := placement.Refused(b, placement.Decision{}, placement.Snapshot{}, workv1alpha2.BindingReasonQuotaExceeded, say("team", "9"), now)
	if !changed {
		t.Fatal("the first refusal is no news")
	}
	d.Put(b)
	if d, changed = placement.Refused(b, placement.Decision{}, placement.Snapshot{}, workv1alpha2.BindingReasonQuotaExceeded, say("team", "9500m"), now); changed {
		t.Errorf("other numbers are news: %+v", d.Record)
	}
	if _, changed = placement.Refused(b, placement.Decision{}, placement.Snapshot{}, workv1alpha2.BindingReasonQuotaExceeded, say("all", "9"), now); !changed {
		t.Error("another quota is no news")
	}
}
