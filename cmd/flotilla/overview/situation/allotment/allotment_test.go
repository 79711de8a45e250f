package allotment_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/allotment"
)

// TestOf: what a cluster does not report is left empty.
func TestOf(t *testing.T) {
	part := &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}, Allocated: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
	}
	for name, tc := range map[string]struct {
		of          *clusterv1alpha1.ResourceSummary
		cpu, memory string
	}{
		"nothing is reported": {nil, "", ""},
		"CPU alone is":        {part, "3/8", ""},
	} {
		if cpu, memory := allotment.Of(tc.of); cpu != tc.cpu || memory != tc.memory {
			t.Errorf("%s: %q and %q, want %q and %q", name, cpu, memory, tc.cpu, tc.memory)
		}
	}
}
