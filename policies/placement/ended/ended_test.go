package ended_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/ended"
)

func target(name string, replicas int32) workv1alpha2.TargetCluster {
	return workv1alpha2.TargetCluster{Name: name, Replicas: replicas}
}

// TestOf: what was complete in a cluster that leaves is noted once, beside what was noted before.
func TestOf(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "batch/v1", Kind: "Job"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{target("c", 2), target("b", 1), target("a", 3)}
	for name, status := range map[string]string{"c": "True", "b": "False", "a": "True", "z": "True"} {
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{
			ClusterName: name, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"` + status + `"}]}`)},
		})
	}
	before := []ended.Copy{{Cluster: "d", Replicas: 1}}
	for name, tc := range map[string]struct {
		leaving string
		before  []ended.Copy
		want    []ended.Copy
	}{
		"none leaves":             {},
		"one leaves":              {leaving: "a", want: []ended.Copy{{Cluster: "a", Replicas: 3}}},
		"two leave, after others": {leaving: "ac", before: before, want: []ended.Copy{{Cluster: "a", Replicas: 3}, {Cluster: "c", Replicas: 2}, {Cluster: "d", Replicas: 1}}},
		"one in which it runs":    {leaving: "b"},
		"one that it is not in":   {leaving: "z"},
		"one that is noted":       {leaving: "a", before: []ended.Copy{{Cluster: "a", Replicas: 1}}, want: []ended.Copy{{Cluster: "a", Replicas: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			was := slices.Clone(tc.before)
			got := ended.Of(b, tc.before, func(cluster string) bool { return slices.Contains([]byte(tc.leaving), cluster[0]) })
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || !slices.Equal(was, tc.before) {
				t.Errorf("(-want +got):\n%s\nbefore: %v", diff, tc.before)
			}
		})
	}
}

// TestRest: what has ended is not to be placed any more, and takes its place where places are counted.
func TestRest(t *testing.T) {
	constraints := func(all ...policyv1alpha1.SpreadConstraint) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{SpreadConstraints: all}
	}
	clusters := func(least, most int) policyv1alpha1.SpreadConstraint {
		return policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: least, MaxGroups: most}
	}
	regions := policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 2, MaxGroups: 2}
	divided := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	type rest struct {
		Clusters  []workv1alpha2.TargetCluster
		Replicas  int32
		Placement *policyv1alpha1.Placement
		Over      bool
	}
	a, b := target("a", 2), target("b", 2)
	for name, tc := range map[string]struct {
		placement *policyv1alpha1.Placement
		replicas  int32
		clusters  []workv1alpha2.TargetCluster
		copies    []ended.Copy
		want      rest
	}{
		"nothing has ended":            {divided, 4, []workv1alpha2.TargetCluster{a, b}, nil, rest{[]workv1alpha2.TargetCluster{a, b}, 4, divided, false}},
		"a part":                       {divided, 4, []workv1alpha2.TargetCluster{a, b}, []ended.Copy{{Cluster: "a", Replicas: 2}}, rest{[]workv1alpha2.TargetCluster{b}, 2, divided, false}},
		"all parts":                    {divided, 4, nil, []ended.Copy{{Cluster: "a", Replicas: 4}}, rest{nil, 0, divided, true}},
		"more of it is wanted":         {divided, 6, []workv1alpha2.TargetCluster{b}, []ended.Copy{{Cluster: "a", Replicas: 2}}, rest{[]workv1alpha2.TargetCluster{b}, 4, divided, false}},
		"less, and what runs stays":    {divided, 3, []workv1alpha2.TargetCluster{b}, []ended.Copy{{Cluster: "a", Replicas: 2}}, rest{[]workv1alpha2.TargetCluster{b}, 2, divided, false}},
		"one of two clusters":          {constraints(clusters(2, 2)), 2, []workv1alpha2.TargetCluster{a, b}, []ended.Copy{{Cluster: "a"}}, rest{[]workv1alpha2.TargetCluster{b}, 2, constraints(clusters(1, 1)), false}},
		"the one cluster":              {constraints(clusters(1, 1)), 2, []workv1alpha2.TargetCluster{a}, []ended.Copy{{Cluster: "a"}}, rest{nil, 2, constraints(clusters(1, 1)), true}},
		"as many as there are":         {constraints(clusters(2, 0)), 2, []workv1alpha2.TargetCluster{a, b}, []ended.Copy{{Cluster: "a"}}, rest{[]workv1alpha2.TargetCluster{b}, 2, constraints(clusters(1, 0)), false}},
		"regions stay what they are":   {constraints(regions), 2, []workv1alpha2.TargetCluster{a, b}, []ended.Copy{{Cluster: "a"}}, rest{[]workv1alpha2.TargetCluster{b}, 2, constraints(regions), false}},
		"it has no placement any more": {nil, 2, []workv1alpha2.TargetCluster{a}, []ended.Copy{{Cluster: "a"}}, rest{nil, 2, nil, false}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Placement: tc.placement, Replicas: tc.replicas, Clusters: tc.clusters}
			was := spec.DeepCopy()
			got, over := ended.Rest(spec, tc.copies)
			if diff := cmp.Diff(tc.want, rest{got.Clusters, got.Replicas, got.Placement, over}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(was, spec); diff != "" {
				t.Errorf("the spec was changed:\n%s", diff)
			}
		})
	}
}
