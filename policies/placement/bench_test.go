package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// BenchmarkDecide makes first decisions for 100 replicas on 100 and on 1,000
// clusters. Goal: 1,000 a second on two cores, of 100 KB at most.
func BenchmarkDecide(b *testing.B) {
	weights := &policyv1alpha1.ClusterPreferences{}
	for i := range 5 {
		weights.StaticWeightList = append(weights.StaticWeightList, policyv1alpha1.StaticClusterWeight{
			TargetCluster: policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": fmt.Sprintf("member-%03d", i)}}},
			Weight:        int64(i + 1),
		})
	}
	by := func(field policyv1alpha1.SpreadFieldValue, least, most int) policyv1alpha1.SpreadConstraint {
		return policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: least, MaxGroups: most}
	}
	dynamic := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
	cases := []struct {
		name      string
		placement policyv1alpha1.Placement
		edit      func(*workv1alpha2.ResourceBindingSpec)
		peers     framework.Peers
	}{
		{name: "duplicated"},
		{name: "static", placement: policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, weights)}},
		{name: "dynamic", placement: policyv1alpha1.Placement{ReplicaScheduling: dynamic}},
		{name: "aggregated", placement: policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)}},
		{name: "region", placement: policyv1alpha1.Placement{ReplicaScheduling: dynamic, SpreadConstraints: []policyv1alpha1.SpreadConstraint{by("region", 2, 3), by("cluster", 4, 10)}}},
		{name: "zone", placement: policyv1alpha1.Placement{ReplicaScheduling: dynamic, SpreadConstraints: []policyv1alpha1.SpreadConstraint{by("zone", 3, 4), by("cluster", 3, 10)}}},
		{name: "region-zone-provider", placement: policyv1alpha1.Placement{ReplicaScheduling: dynamic, SpreadConstraints: []policyv1alpha1.SpreadConstraint{by("zone", 4, 6), by("region", 2, 3), by("provider", 2, 0), by("cluster", 4, 10)}}},
		{name: "label-of-each", placement: policyv1alpha1.Placement{ReplicaScheduling: dynamic, SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByLabel: "name", MinGroups: 5, MaxGroups: 8}}}},
		{
			name: "affinity-groups", placement: policyv1alpha1.Placement{ReplicaScheduling: dynamic}, peers: peers(100, 10),
			edit: func(s *workv1alpha2.ResourceBindingSpec) {
				s.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "app=web"}
			},
		},
		{
			name:      "components",
			placement: policyv1alpha1.Placement{ReplicaScheduling: dynamic, SpreadConstraints: []policyv1alpha1.SpreadConstraint{by("cluster", 1, 1)}},
			edit: func(s *workv1alpha2.ResourceBindingSpec) {
				requirements := &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: s.ReplicaRequirements.ResourceRequest}
				s.Replicas, s.Components = 0, []workv1alpha2.Component{
					{Name: "jobmanager", Replicas: 1, ReplicaRequirements: requirements}, {Name: "taskmanager", Replicas: 5, ReplicaRequirements: requirements},
				}
			},
		},
	}
	for _, n := range []int{100, 1000} {
		snap := placement.NewSnapshot(fleet(n))
		for _, c := range cases {
			b.Run(fmt.Sprintf("%s-%d", c.name, n), func(b *testing.B) {
				bind := binding(deployment(100, c.placement))
				if c.edit != nil {
					c.edit(&bind.Spec)
				}
				in := placement.Situation{Clusters: snap, Peers: c.peers, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
				b.ReportAllocs()
				for b.Loop() {
					if d, changed := placement.Decide(bind, in, placement.Options{}); !changed || d.Err != nil {
						b.Fatal(d.Err)
					}
				}
			})
		}
	}
}

// BenchmarkAgain looks at what is placed already on all clusters.
func BenchmarkAgain(b *testing.B) {
	for _, n := range []int{100, 1000} {
		snap := placement.NewSnapshot(fleet(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bind := binding(deployment(100, policyv1alpha1.Placement{}))
			in := placement.Situation{Clusters: snap, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			d, _ := placement.Decide(bind, in, placement.Options{})
			d.Put(bind)
			b.ReportAllocs()
			for b.Loop() {
				if _, changed := placement.Decide(bind, in, placement.Options{}); changed {
					b.Fatal("it was placed already")
				}
			}
		})
	}
}

// BenchmarkSnapshot makes what decisions share.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{100, 1000} {
		clusters := fleet(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				placement.NewSnapshot(clusters)
			}
		})
	}
}

// fleet returns n clusters in 5 regions, 15 zones and 3 providers, each of
// which lists as many APIs, and counts as many sizes of nodes, as a real one.
func fleet(n int) []*clusterv1alpha1.Cluster {
	rnd := rand.New(rand.NewPCG(1, 2))
	clusters := make([]*clusterv1alpha1.Cluster, n)
	for i := range clusters {
		clusters[i] = cluster(fmt.Sprintf("member-%03d", i), 110*int64(1+rnd.IntN(9)), region(fmt.Sprintf("region-%d", i%5)), manyAPIs, sizes)
		clusters[i].Spec.Zones = []string{fmt.Sprintf("zone-%d", i%15)}
		clusters[i].Spec.Provider = fmt.Sprintf("provider-%d", i%3)
	}
	return clusters
}

// peers returns n bindings on so many clusters each, the last ones of 100.
func peers(n, clusters int) framework.Peers {
	var out framework.Peers
	for i := range n {
		var names []string
		for j := range clusters {
			names = append(names, fmt.Sprintf("member-%03d", 50+(i+j)%50))
		}
		out.AntiAffinity = append(out.AntiAffinity, names)
	}
	return out
}

// manyAPIs makes a cluster list as many APIs as a real one does.
func manyAPIs(c *clusterv1alpha1.Cluster) {
	for g := range 25 {
		e := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group-%02d.example.io/v1", g)}
		for k := range 8 {
			e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Kind: fmt.Sprintf("Kind%d", k)})
		}
		c.Status.APIEnablements = append([]clusterv1alpha1.APIEnablement{e}, c.Status.APIEnablements...)
	}
}

// sizes makes a cluster count nodes of nine sizes.
func sizes(c *clusterv1alpha1.Cluster) {
	for g := range int64(9) {
		c.Spec.ResourceModels = append(c.Spec.ResourceModels, clusterv1alpha1.ResourceModel{
			Grade: uint(g),
			Ranges: []clusterv1alpha1.ResourceModelRange{
				{Name: corev1.ResourceCPU, Min: *resource.NewQuantity(g*4, resource.DecimalSI)},
				{Name: corev1.ResourceMemory, Min: *resource.NewQuantity(g*16<<30, resource.BinarySI)},
			},
		})
		c.Status.ResourceSummary.AllocatableModelings = append(c.Status.ResourceSummary.AllocatableModelings,
			clusterv1alpha1.AllocatableModeling{Grade: uint(g), Count: 3})
	}
}
