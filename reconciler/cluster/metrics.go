package cluster

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// Count registers the metrics of what Clusters report, under Karmada's names, for as long as ctx.
// Hub is a cache: it is asked whenever the registry is read, so that nothing is kept of
// clusters that are gone.
func Count(ctx context.Context, registry prometheus.Registerer, hub client.Reader) {
	stagemetrics.Replace(registry, newGauges(func() []clusterv1alpha1.Cluster {
		var list clusterv1alpha1.ClusterList
		if err := hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil // the cache is not there yet, or not any more
		}
		return list.Items
	}))
}

// gauges show of each cluster what its status says.
type gauges struct {
	clusters func() []clusterv1alpha1.Cluster
	all      []gauge
}

// gauge is one figure of a cluster; false where that is not known.
type gauge struct {
	desc  *prometheus.Desc
	value func(*clusterv1alpha1.ClusterStatus) (float64, bool)
}

func newGauges(clusters func() []clusterv1alpha1.Cluster) *gauges {
	allocatable := func(s *clusterv1alpha1.ResourceSummary) corev1.ResourceList { return s.Allocatable }
	allocated := func(s *clusterv1alpha1.ResourceSummary) corev1.ResourceList { return s.Allocated }
	out := &gauges{clusters: clusters}
	for _, g := range []struct {
		name, help string
		value      func(*clusterv1alpha1.ClusterStatus) (float64, bool)
	}{
		{"cluster_ready_state", "State of the cluster(1 if ready, 0 otherwise).", readyState},
		{"cluster_node_number", "Number of nodes in the cluster.", nodeCount(func(n *clusterv1alpha1.NodeSummary) int32 { return n.TotalNum })},
		{"cluster_ready_node_number", "Number of ready nodes in the cluster.", nodeCount(func(n *clusterv1alpha1.NodeSummary) int32 { return n.ReadyNum })},
		{"cluster_cpu_allocatable_number", "Number of allocatable CPU in the cluster.", amount(allocatable, corev1.ResourceCPU)},
		{"cluster_cpu_allocated_number", "Number of allocated CPU in the cluster.", amount(allocated, corev1.ResourceCPU)},
		{"cluster_memory_allocatable_bytes", "Allocatable cluster memory resource in bytes.", amount(allocatable, corev1.ResourceMemory)},
		{"cluster_memory_allocated_bytes", "Allocated cluster memory resource in bytes.", amount(allocated, corev1.ResourceMemory)},
		{"cluster_pod_allocatable_number", "Number of allocatable pods in the cluster.", amount(allocatable, corev1.ResourcePods)},
		{"cluster_pod_allocated_number", "Number of allocated pods in the cluster.", amount(allocated, corev1.ResourcePods)},
	} {
		out.all = append(out.all, gauge{prometheus.NewDesc(g.name, g.help, []string{"cluster_name"}, nil), g.value})
	}
	return out
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, one := range g.all {
		to <- one.desc
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	clusters := g.clusters()
	for i := range clusters {
		for _, one := range g.all {
			if value, known := one.value(&clusters[i].Status); known {
				to <- prometheus.MustNewConstMetric(one.desc, prometheus.GaugeValue, value, clusters[i].Name)
			}
		}
	}
}

func readyState(s *clusterv1alpha1.ClusterStatus) (float64, bool) {
	if meta.IsStatusConditionTrue(s.Conditions, clusterv1alpha1.ClusterConditionReady) {
		return 1, true
	}
	return 0, true
}

func nodeCount(of func(*clusterv1alpha1.NodeSummary) int32) func(*clusterv1alpha1.ClusterStatus) (float64, bool) {
	return func(s *clusterv1alpha1.ClusterStatus) (float64, bool) {
		if s.NodeSummary == nil {
			return 0, false
		}
		return float64(of(s.NodeSummary)), true
	}
}

func amount(of func(*clusterv1alpha1.ResourceSummary) corev1.ResourceList, name corev1.ResourceName) func(*clusterv1alpha1.ClusterStatus) (float64, bool) {
	return func(s *clusterv1alpha1.ClusterStatus) (float64, bool) {
		if s.ResourceSummary == nil {
			return 0, false
		}
		quantity := of(s.ResourceSummary)[name]
		return quantity.AsApproximateFloat64(), true
	}
}
