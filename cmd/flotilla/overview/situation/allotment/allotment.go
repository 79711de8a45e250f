// Package allotment says how much of a cluster is taken.
//
// In goes what a cluster reports of its resources; out come texts such as "3/8". It reads and writes nothing.
package allotment

import (
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Of returns how much of the allocatable CPU and memory is allocated.
func Of(r *clusterv1alpha1.ResourceSummary) (cpu, memory string) {
	if r == nil {
		return "", ""
	}
	share := func(name corev1.ResourceName) string {
		all, ok := r.Allocatable[name]
		if !ok {
			return ""
		}
		used := r.Allocated[name]
		return used.String() + "/" + all.String()
	}
	return share(corev1.ResourceCPU), share(corev1.ResourceMemory)
}
