package profile

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The smallest steps in which free resources are reported: thousandths of cores, bytes and pieces.
const (
	leastCPU   = 10
	leastBytes = 16 << 20
)

// down rounds what is free of a resource down. It loses less than the smallest step, or less than one
// part in so many; what is not more than parts smallest steps is reported in these.
func down(name corev1.ResourceName, free, parts int64) int64 {
	step, factors := int64(1), []int64{2, 5, 10}
	switch {
	case name == corev1.ResourceCPU:
		step = leastCPU
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage:
		step, factors = leastBytes, []int64{2}
	case strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		factors = []int64{2}
	}
	unit := step
	for i := 0; step <= math.MaxInt64/16; i++ {
		next := unit * factors[i%len(factors)]
		if next > free/parts {
			break
		}
		step = next
		if i%len(factors) == len(factors)-1 {
			unit = step
		}
	}
	return free - free%step
}
