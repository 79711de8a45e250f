package estimate

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// General returns how many replicas fit by the sums that the cluster reports:
// what is allocatable, less what pods hold and wait for, and less what was
// promised, which may be nil. A cluster that reports no summary has no room.
// Without requirements only the number of pods counts.
func General(summary *clusterv1alpha1.ResourceSummary, promised *Load, req *workv1alpha2.ReplicaRequirements) int32 {
	if summary == nil {
		return 0
	}
	pods := free(summary, promised, corev1.ResourcePods)
	most := pods.Value()
	if req != nil {
		for name, want := range req.ResourceRequest {
			if most <= 0 {
				break
			}
			most = min(most, fits(summary, promised, name, want))
		}
	}
	return int32(min(max(most, 0), math.MaxInt32))
}

func fits(summary *clusterv1alpha1.ResourceSummary, promised *Load, name corev1.ResourceName, want resource.Quantity) int64 {
	have := free(summary, promised, name)
	if want.Sign() <= 0 {
		return math.MaxInt64
	}
	if have.Sign() <= 0 {
		return 0
	}
	if name == corev1.ResourceCPU {
		return have.MilliValue() / max(want.MilliValue(), 1)
	}
	return have.Value() / max(want.Value(), 1)
}

func free(summary *clusterv1alpha1.ResourceSummary, promised *Load, name corev1.ResourceName) resource.Quantity {
	have := summary.Allocatable[name].DeepCopy() // a large one is held by reference
	have.Sub(summary.Allocated[name])
	have.Sub(summary.Allocating[name])
	if promised != nil {
		have.Sub(promised.Resources[name])
	}
	return have
}
