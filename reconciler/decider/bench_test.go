package decider

import (
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// BenchmarkDecide decides about new bindings on 100 clusters, on all cores, with
// all reservations of those before; by the nodes of the clusters, too.
func BenchmarkDecide(b *testing.B) {
	var members []client.Object
	for i := range 100 {
		members = append(members, cluster(fmt.Sprintf("m%03d", i), capacity(1_000_000), func(c *clusterv1alpha1.Cluster) {
			c.Spec.Region = fmt.Sprint("region-", i%5)
			c.Status.ResourceSummary.Allocatable[corev1.ResourcePods] = resource.MustParse("100M")
		}))
	}
	cases := map[string]func(*workv1alpha2.ResourceBinding){
		"duplicated": func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling = nil },
		"dynamic":    func(*workv1alpha2.ResourceBinding) {},
		"aggregated": func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"}
		},
		"by region": func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 2, MaxGroups: 3},
				{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 4, MaxGroups: 8},
			}
		},
	}
	watched := byNodes{}
	for _, m := range members {
		watched[m.GetName()] = nodesOf(20, "50000")
	}
	for name, change := range cases {
		b.Run(name, func(b *testing.B) { benchmark(b, New(hubOf(members...).Build(), Options{}), change) })
		b.Run(name+" by nodes", func(b *testing.B) {
			benchmark(b, New(hubOf(members...).Build(), Options{Estimators: Estimators{Watched: watched}}), change)
		})
	}
}

func benchmark(b *testing.B, d *Decider, change func(*workv1alpha2.ResourceBinding)) {
	fresh := make([]*workv1alpha2.ResourceBinding, 1000)
	for i := range fresh {
		fresh[i] = divided(fmt.Sprint("web", i), 30, change)
	}
	b.ReportAllocs()
	var count atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			decision, changed, err := d.Decide(b.Context(), fresh[int(count.Add(1))%len(fresh)])
			if err != nil || !changed || !decision.Record.Succeeded() {
				b.Errorf("%v: %v", decision.Err, err)
			}
		}
	})
}
