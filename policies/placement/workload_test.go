package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// flink has a job manager and n task managers, of so many cores each.
func flink(n int32, cores string, p policyv1alpha1.Placement, current ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBindingSpec {
	requirements := &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)}}
	return &workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Placement: &p, Clusters: current,
		Components: []workv1alpha2.Component{
			{Name: "job", Replicas: 1, ReplicaRequirements: requirements}, {Name: "task", Replicas: n, ReplicaRequirements: requirements},
		},
	}
}

func runs(cluster string, tasks int32) workv1alpha2.TargetCluster {
	return workv1alpha2.TargetCluster{Name: cluster, Components: []workv1alpha2.TargetComponent{{Name: "job", Replicas: 1}, {Name: "task", Replicas: tasks}}}
}

func TestComponents(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 20), cluster("c", 5)})
	aggregated := divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	one := []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	onOne := policyv1alpha1.Placement{SpreadConstraints: one, ReplicaScheduling: aggregated}
	single := flink(1, "1", onOne)
	single.Components = single.Components[:1]
	cases := map[string]struct {
		spec    *workv1alpha2.ResourceBindingSpec
		opts    placement.Options
		want    []workv1alpha2.TargetCluster
		wantErr string
	}{
		"on the cluster with the most room for sets":          {spec: flink(4, "1", onOne), want: []workv1alpha2.TargetCluster{runs("b", 4)}},
		"where only one cluster has room for a set":           {spec: flink(8, "2", onOne), want: []workv1alpha2.TargetCluster{runs("b", 8)}},
		"where no cluster has":                                {spec: flink(9, "3", onOne), wantErr: "no enough resource when selecting 1 cluster: room for 0 of 1 sets of components"},
		"it stays where it runs, however full that is":        {spec: flink(99, "1", onOne, runs("c", 4)), want: []workv1alpha2.TargetCluster{runs("c", 99)}},
		"without a constraint, by name, everywhere":           {spec: flink(4, "1", policyv1alpha1.Placement{}), want: []workv1alpha2.TargetCluster{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
		"duplicated on one cluster: room does not matter":     {spec: flink(99, "9", policyv1alpha1.Placement{SpreadConstraints: one}), want: []workv1alpha2.TargetCluster{runs("a", 99)}},
		"switched off: names only":                            {spec: flink(4, "1", onOne), opts: placement.Options{NoComponents: true}, want: []workv1alpha2.TargetCluster{{Name: "b"}}},
		"a single component without other replicas is a set":  {spec: single, want: []workv1alpha2.TargetCluster{{Name: "b", Components: []workv1alpha2.TargetComponent{{Name: "job", Replicas: 1}}}}},
		"fixed weights, which mean nothing here, leave names": {spec: flink(1, "1", policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}), want: []workv1alpha2.TargetCluster{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := placement.Place(placement.Request{Spec: tc.spec}, snap, tc.opts)
			if text(err) != tc.wantErr {
				t.Errorf("error %q, want %q", text(err), tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got.Clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			agrees(t, placement.Request{Spec: tc.spec}, snap, tc.opts)
		})
	}
}

func TestDueOfComponents(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 20)})
	p := policyv1alpha1.Placement{
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}},
		ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil),
	}
	cases := map[string]struct {
		spec *workv1alpha2.ResourceBindingSpec
		want string
	}{
		"nowhere yet":                        {flink(4, "1", p), placement.DueReplicasChanged},
		"as it should be":                    {flink(4, "1", p, runs("b", 4)), ""},
		"more of a component":                {flink(5, "1", p, runs("b", 4)), placement.DueReplicasChanged},
		"a list that somebody did not write": {flink(5, "1", p, workv1alpha2.TargetCluster{Name: "b"}), ""},
		"on a cluster that has gone":         {flink(4, "1", p, runs("x", 4)), placement.DueClusterLeaving},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding(tc.spec)
			b.Annotations = map[string]string{policyv1alpha1.PolicyPlacementAnnotation: placement.AppliedPlacement(tc.spec.Placement)}
			if got, _ := placement.Due(b, snap); got != tc.want {
				t.Errorf("due because %q, want %q", got, tc.want)
			}
			if got, want := placement.Answered(b), tc.want != placement.DueReplicasChanged; got != want {
				t.Errorf("answered = %v, want %v", got, want)
			}
		})
	}
}

// Clusters that are left, or leave, and what a fresh look forgets.
func TestMoves(t *testing.T) {
	gone := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	leaving := func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &gone }
	dynamic := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
	static := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)
	aggregated := divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	evicted := func(spec *workv1alpha2.ResourceBindingSpec, from string) *workv1alpha2.ResourceBindingSpec {
		spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: from}}
		return spec
	}
	terms := func(s *policyv1alpha1.ReplicaSchedulingStrategy) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ReplicaScheduling: s, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}, OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{}}},
			{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c"}}},
		}}
	}
	plain := func(s *policyv1alpha1.ReplicaSchedulingStrategy) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ReplicaScheduling: s}
	}
	three := []*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 20), cluster("c", 30)}
	cases := map[string]struct {
		clusters []*clusterv1alpha1.Cluster
		req      placement.Request
		want     string
		wantTerm string
	}{
		"duplicated leaves a cluster that it is evicted from": {three, placement.Request{Spec: evicted(deployment(2, plain(nil), on("b", 2)), "a")}, "{b:2, c:2}", ""},
		"dynamic puts elsewhere what was evicted":             {three, placement.Request{Spec: evicted(deployment(10, plain(dynamic), on("b", 5)), "a")}, "{b:7, c:3}", ""},
		"aggregated too, where it runs already first":         {three, placement.Request{Spec: evicted(deployment(10, plain(aggregated), on("b", 5)), "a")}, "{b:10}", ""},
		"static divides among those that are left":            {three, placement.Request{Spec: evicted(deployment(6, plain(static), on("b", 2)), "a")}, "{b:3, c:3}", ""},
		"a cluster that leaves is none": {
			[]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 20, leaving), cluster("c", 30)},
			placement.Request{Spec: deployment(6, plain(dynamic), on("a", 2), on("b", 4))}, "{a:3, c:3}", "",
		},
		"a fresh look divides anew by room":                {three, placement.Request{Spec: deployment(6, plain(dynamic), on("a", 6)), Fresh: true}, "{a:1, b:2, c:3}", ""},
		"and aggregates where it runs, if that will do":    {three, placement.Request{Spec: deployment(6, plain(aggregated), on("a", 6)), Fresh: true}, "{a:6}", ""},
		"from the term in force on":                        {three, placement.Request{Spec: deployment(6, terms(dynamic)), ObservedAffinity: "second"}, "{c:6}", "second"},
		"a fresh look starts with the first term":          {three, placement.Request{Spec: deployment(6, terms(dynamic)), ObservedAffinity: "second", Fresh: true}, "{a:6}", "first"},
		"a term that there is not any more":                {three, placement.Request{Spec: deployment(6, terms(dynamic)), ObservedAffinity: "third"}, "{a:6}", "first"},
		"dynamic overflows":                                {three, placement.Request{Spec: deployment(16, terms(dynamic))}, "{a:10, b:2, c:4}", "first"},
		"aggregated overflows":                             {three, placement.Request{Spec: deployment(16, terms(aggregated))}, "{a:10, c:6}", "first"},
		"static does not look at room, and never does":     {three, placement.Request{Spec: deployment(16, terms(static))}, "{a:16}", "first"},
		"duplicated neither":                               {three, placement.Request{Spec: deployment(16, terms(nil))}, "{a:16}", "first"},
		"a term without room makes way for the next":       {three[:1], placement.Request{Spec: deployment(4, terms(dynamic))}, "{a:4}", "first"},
		"negative replicas of somebody else are none":      {three, placement.Request{Spec: deployment(3, plain(aggregated), on("b", -7))}, "{c:3}", ""},
		"replicas on a cluster that has gone do not count": {three, placement.Request{Spec: deployment(3, plain(aggregated), on("x", 3))}, "{c:3}", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snap := placement.NewSnapshot(tc.clusters)
			got, err := placement.Place(tc.req, snap, placement.Options{})
			if err != nil || placement.Text(got.Clusters) != tc.want || got.AffinityName != tc.wantTerm {
				t.Errorf("placed on %s by %q, %v; want %s by %q", placement.Text(got.Clusters), got.AffinityName, err, tc.want, tc.wantTerm)
			}
			agrees(t, tc.req, snap, placement.Options{})
		})
	}
}

func TestPeersOf(t *testing.T) {
	of := func(namespace, name, affinity, anti string, clusters ...workv1alpha2.TargetCluster) workv1alpha2.Binding {
		b := binding(deployment(1, policyv1alpha1.Placement{}, clusters...))
		b.Namespace, b.Name = namespace, name
		if affinity+anti != "" {
			b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: affinity, AntiAffinityGroup: anti}
		}
		return b
	}
	all := []workv1alpha2.Binding{
		of("shop", "one", "k=v", "", on("a", 1), on("b", 1)), of("shop", "two", "k=v", "x=y", on("b", 1)), of("shop", "nowhere", "k=v", "x=y"),
		of("shop", "alone", "", "", on("c", 1)), of("shop", "other", "k=w", "x=z", on("c", 1)), of("bank", "far", "k=v", "x=y", on("d", 1)),
	}
	got := placement.PeersOf(of("shop", "one", "k=v", "x=y"), all)
	if diff := cmp.Diff([][]string{{"b"}}, got.Affinity); diff != "" {
		t.Errorf("to be with (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"b"}}, got.AntiAffinity); diff != "" {
		t.Errorf("to be apart from (-want +got):\n%s", diff)
	}
	if none := placement.PeersOf(of("shop", "alone", "", ""), all); none.Affinity != nil || none.AntiAffinity != nil {
		t.Errorf("peers of a binding in no group: %v", none)
	}
}

// TestAsItRuns: as much as is placed is asked for, where it is less than is wanted.
func TestAsItRuns(t *testing.T) {
	divides := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	two := []workv1alpha2.TargetCluster{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 3}}
	for name, tc := range map[string]struct {
		spec workv1alpha2.ResourceBindingSpec
		want int32 // 0: it is as it is
	}{
		"it wants more":                  {workv1alpha2.ResourceBindingSpec{Replicas: 8, Placement: divides, Clusters: two}, 5},
		"it wants as many":               {workv1alpha2.ResourceBindingSpec{Replicas: 5, Placement: divides, Clusters: two}, 0},
		"it wants fewer":                 {workv1alpha2.ResourceBindingSpec{Replicas: 2, Placement: divides, Clusters: two}, 0},
		"it wants more in each cluster":  {workv1alpha2.ResourceBindingSpec{Replicas: 8, Clusters: two}, 3},
		"it is placed nowhere":           {workv1alpha2.ResourceBindingSpec{Replicas: 8, Placement: divides}, 0},
		"it is a set of many components": {workv1alpha2.ResourceBindingSpec{Replicas: 8, Clusters: two, Components: make([]workv1alpha2.Component, 2)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{Spec: tc.spec}
			got, less := placement.AsItRuns(b)
			if less != (tc.want > 0) || less && got.BindingSpec().Replicas != tc.want || b.Spec.Replicas != tc.spec.Replicas {
				t.Errorf("%t, %d replicas, want %d", less, got.BindingSpec().Replicas, tc.want)
			}
		})
	}
}
