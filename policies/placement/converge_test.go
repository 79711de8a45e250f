package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// FuzzConverge changes a fleet and what a binding asks for, step by step. After each
// step one decision is written at most: the next one finds nothing to do, whether
// the binding could be placed or not.
func FuzzConverge(f *testing.F) {
	for kind := range uint8(64) {
		f.Add(uint64(kind)*7+1, kind, uint8(6))
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind, clusters uint8) {
		rnd := rand.New(rand.NewPCG(seed, uint64(kind)))
		fleet := randomClusters(rnd, int(clusters%12)+1)
		b := binding(deployment(int32(rnd.IntN(60)), policyv1alpha1.Placement{
			ReplicaScheduling: randomStrategy(rnd, kind), SpreadConstraints: randomConstraints(rnd),
		}))
		switch kind >> 4 & 3 {
		case 1:
			b.Spec.Components = []workv1alpha2.Component{{Name: "x", Replicas: 2}, {Name: "y", Replicas: 1}}
		case 2:
			b.Spec.Replicas, b.Spec.ReplicaRequirements = 0, nil
		}
		if kind&4 != 0 {
			b.Spec.Placement.ClusterAffinities = racks()
		} else {
			b.Spec.Placement.ClusterAffinity = &racks()[0].ClusterAffinity
		}
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		opts := placement.Options{KeepEmpty: kind&8 != 0}
		for step := range 8 {
			now = now.Add(time.Minute)
			in := placement.Situation{Clusters: placement.NewSnapshot(fleet), Now: now}
			d, changed := placement.Decide(b, in, opts)
			if changed {
				d.Put(b)
			}
			if again, changed := placement.Decide(b, in, opts); changed {
				t.Fatalf("step %d: decided twice, first because %q, then because %q (-first +then):\n%s",
					step, d.Why, again.Why, cmp.Diff(d, again, cmp.Comparer(func(a, b error) bool { return text(a) == text(b) })))
			}
			fleet = jolt(rnd, fleet, b, now)
		}
	})
}

// racks are the groups of clusters with the labels of randomClusters.
func racks() []policyv1alpha1.ClusterAffinityTerm {
	out := make([]policyv1alpha1.ClusterAffinityTerm, 3)
	for i := range out {
		rack := fmt.Sprint(i)
		out[i].AffinityName = "rack-" + rack
		out[i].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": rack}}
	}
	out[0].OverflowAffinities = []policyv1alpha1.OverflowAffinityTerm{{AffinityName: "spare", ClusterAffinity: out[2].ClusterAffinity}}
	return out
}

// jolt changes one thing about a cluster or the binding.
func jolt(rnd *rand.Rand, fleet []*clusterv1alpha1.Cluster, b *workv1alpha2.ResourceBinding, now time.Time) []*clusterv1alpha1.Cluster {
	fleet = append([]*clusterv1alpha1.Cluster{}, fleet...)
	at := rnd.IntN(len(fleet))
	c := fleet[at].DeepCopy()
	fleet[at] = c
	switch rnd.IntN(7) {
	case 0:
		c.Labels["rack"] = fmt.Sprint(rnd.IntN(4))
	case 1:
		c.DeletionTimestamp = &metav1.Time{Time: now}
	case 2:
		c.Spec.Region = string(rune('a' + rnd.IntN(4)))
	case 3:
		return occupied(fleet, b.Spec.Clusters)
	case 4:
		if len(b.Spec.Components) > 0 {
			b.Spec.Components[0].Replicas = int32(rnd.IntN(20))
		} else {
			b.Spec.Replicas = int32(rnd.IntN(60))
		}
	case 5:
		b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: now}
	case 6:
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: c.Name}}
	}
	return fleet
}
