// Package clusters invents clusters to place on.
//
// In go how many, out come clusters as a fleet of that size has them; the same each
// time. Nothing runs in them.
package clusters

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Regions are where clusters are.
var Regions = []string{"eu-central", "eu-west", "us-east", "us-west", "ap-south"}

// Tiers are how good clusters are, as their label tier says, the best first.
var Tiers = []string{"gold", "silver", "bronze", "iron"}

var providers = []string{"acme", "globex", "initech"}

// Many returns n clusters as a fleet of some size has them: in regions
// and zones, labelled, some of them tainted, each with 40 groups of kinds and
// sums of what it has free. They are in pull mode: no one connects to them.
func Many(n int) []*clusterv1alpha1.Cluster {
	kinds := manyKinds()
	out := make([]*clusterv1alpha1.Cluster, n)
	for i := range out {
		region := Regions[i%len(Regions)]
		zone := fmt.Sprintf("%s-%c", region, 'a'+rune(i/len(Regions)%3))
		out[i] = &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%02d", region, i),
				Labels: map[string]string{
					"tier": Tiers[i%len(Tiers)], "environment": "production", "team": fmt.Sprintf("team-%d", i%7),
					"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone,
				},
			},
			Spec: clusterv1alpha1.ClusterSpec{
				ID: fmt.Sprintf("cluster-%d", i), SyncMode: clusterv1alpha1.Pull, APIEndpoint: fmt.Sprintf("https://10.0.%d.1:6443", i),
				Region: region, Zones: []string{zone}, Provider: providers[i%len(providers)],
			},
			Status: clusterv1alpha1.ClusterStatus{
				KubernetesVersion: "v1.36.4", APIEnablements: kinds, Conditions: readyConditions(),
				NodeSummary:     &clusterv1alpha1.NodeSummary{TotalNum: int32(20 + i), ReadyNum: int32(20 + i)},
				ResourceSummary: sums(int64(20 + i)),
			},
		}
		if i%10 == 9 {
			out[i].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	return out
}

// manyKinds are those that placements ask for, among many others.
func manyKinds() []clusterv1alpha1.APIEnablement {
	out := []clusterv1alpha1.APIEnablement{
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap"}, {Name: "namespaces", Kind: "Namespace"}, {Name: "nodes", Kind: "Node"},
			{Name: "pods", Kind: "Pod"}, {Name: "secrets", Kind: "Secret"}, {Name: "services", Kind: "Service"},
		}},
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{
			{Name: "daemonsets", Kind: "DaemonSet"}, {Name: "deployments", Kind: "Deployment"}, {Name: "statefulsets", Kind: "StatefulSet"},
		}},
	}
	for i := len(out); i < 40; i++ {
		group := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group%02d.example.com/v1", i)}
		for j := range 6 {
			group.Resources = append(group.Resources, clusterv1alpha1.APIResource{Name: fmt.Sprintf("things%d", j), Kind: fmt.Sprintf("Thing%d", j)})
		}
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b clusterv1alpha1.APIEnablement) int { return cmp.Compare(a.GroupVersion, b.GroupVersion) })
	return out
}

func readyConditions() []metav1.Condition {
	now := metav1.Now()
	return []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: now,
			Reason: clusterv1alpha1.ClusterReadyReason, Message: clusterv1alpha1.ClusterReadyMessage},
		{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue, LastTransitionTime: now,
			Reason: clusterv1alpha1.APIEnablementsCompleteReason, Message: "all kinds were read from the cluster"},
	}
}

// sums are those of so many nodes, a third of them in use. There is room for
// all that is placed here, however often.
func sums(nodes int64) *clusterv1alpha1.ResourceSummary {
	of := func(nodes int64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewQuantity(64*nodes, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(256*nodes<<30, resource.BinarySI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(1024*nodes<<30, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(250*nodes, resource.DecimalSI),
		}
	}
	return &clusterv1alpha1.ResourceSummary{Allocatable: of(nodes), Allocated: of(nodes / 3)}
}
