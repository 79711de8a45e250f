package validate

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// gibibyte in bytes.
const gibibyte = 1 << 30

// DefaultModels returns the resource models of clusters that name none: nine
// grades of nodes that double in size.
func DefaultModels() []clusterv1alpha1.ResourceModel {
	cpu := []int64{0, 1, 2, 4, 8, 16, 32, 64, 128}
	memory := []int64{0, 4, 16, 32, 64, 128, 256, 512, 1024}
	out := make([]clusterv1alpha1.ResourceModel, len(cpu))
	for i := range cpu {
		cpuMax, memoryMax := *infinity(), *infinity()
		if i+1 < len(cpu) {
			cpuMax = *resource.NewQuantity(cpu[i+1], resource.DecimalSI)
			memoryMax = *resource.NewQuantity(memory[i+1]*gibibyte, resource.BinarySI)
		}
		out[i] = clusterv1alpha1.ResourceModel{Grade: uint(i), Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: corev1.ResourceCPU, Min: *resource.NewQuantity(cpu[i], resource.DecimalSI), Max: cpuMax},
			{Name: corev1.ResourceMemory, Min: *resource.NewQuantity(memory[i]*gibibyte, resource.BinarySI), Max: memoryMax},
		}}
	}
	return out
}

func infinity() *resource.Quantity { return resource.NewQuantity(math.MaxInt64, resource.DecimalSI) }

// standardise sorts models by grade and lets them reach from zero to infinity.
func standardise(ms []clusterv1alpha1.ResourceModel) {
	slices.SortFunc(ms, func(a, b clusterv1alpha1.ResourceModel) int { return cmp.Compare(a.Grade, b.Grade) })
	for j := range ms[0].Ranges {
		ms[0].Ranges[j].Min.Set(0)
	}
	last := ms[len(ms)-1].Ranges
	for j := range last {
		last[j].Max.Set(math.MaxInt64)
	}
}
