package cluster

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// TestGauges: what is known of a cluster is reported, and what is not is left out.
func TestGauges(t *testing.T) {
	east := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	east.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	east.Status.NodeSummary = &clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2}
	east.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7500m"), corev1.ResourceMemory: resource.MustParse("1Ki")},
	}
	west := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newGauges(func() []clusterv1alpha1.Cluster { return []clusterv1alpha1.Cluster{east, west} }))
	const want = `
# HELP cluster_cpu_allocatable_number Number of allocatable CPU in the cluster.
# TYPE cluster_cpu_allocatable_number gauge
cluster_cpu_allocatable_number{cluster_name="east"} 7.5
# HELP cluster_memory_allocatable_bytes Allocatable cluster memory resource in bytes.
# TYPE cluster_memory_allocatable_bytes gauge
cluster_memory_allocatable_bytes{cluster_name="east"} 1024
# HELP cluster_node_number Number of nodes in the cluster.
# TYPE cluster_node_number gauge
cluster_node_number{cluster_name="east"} 3
# HELP cluster_ready_node_number Number of ready nodes in the cluster.
# TYPE cluster_ready_node_number gauge
cluster_ready_node_number{cluster_name="east"} 2
# HELP cluster_ready_state State of the cluster(1 if ready, 0 otherwise).
# TYPE cluster_ready_state gauge
cluster_ready_state{cluster_name="east"} 1
cluster_ready_state{cluster_name="west"} 0
`
	names := []string{"cluster_cpu_allocatable_number", "cluster_memory_allocatable_bytes", "cluster_node_number", "cluster_ready_node_number", "cluster_ready_state"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}
