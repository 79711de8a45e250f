package estimate_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
)

func resources(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestGeneral(t *testing.T) {
	node := &clusterv1alpha1.ResourceSummary{
		Allocatable: resources("cpu", "4", "memory", "8Gi", "pods", "110"),
		Allocated:   resources("cpu", "1", "memory", "2Gi", "pods", "10"),
		Allocating:  resources("cpu", "500m", "pods", "1"),
	}
	full := &clusterv1alpha1.ResourceSummary{Allocatable: resources("pods", "10"), Allocated: resources("pods", "12")}
	cases := map[string]struct {
		summary *clusterv1alpha1.ResourceSummary
		request corev1.ResourceList
		want    int32
	}{
		"a cluster that reports nothing has no room": {nil, nil, 0},
		"without requests the pods count":            {node, nil, 99},
		"the scarcest resource decides":              {node, resources("cpu", "1", "memory", "1Gi"), 2},
		"in thousandths of a core":                   {node, resources("cpu", "250m"), 10},
		"a resource that the cluster lacks":          {node, resources("nvidia.com/gpu", "1"), 0},
		"a request of nothing fits anywhere":         {node, resources("nvidia.com/gpu", "0"), 99},
		"more pods than allowed is no room":          {full, nil, 0},
		"more than an int32":                         {&clusterv1alpha1.ResourceSummary{Allocatable: resources("pods", "9000000000")}, nil, math.MaxInt32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var req *workv1alpha2.ReplicaRequirements
			if tc.request != nil {
				req = &workv1alpha2.ReplicaRequirements{ResourceRequest: tc.request}
			}
			if got := estimate.General(tc.summary, nil, req); got != tc.want {
				t.Errorf("room for %d, want %d", got, tc.want)
			}
		})
	}
}

// Quantities over 64 bits are held by reference.
func TestGeneralChangesNothing(t *testing.T) {
	summary := &clusterv1alpha1.ResourceSummary{
		Allocatable: resources("pods", "18446744073709551616"),
		Allocated:   resources("pods", "18446744073709551610"),
	}
	for range 2 {
		if got := estimate.General(summary, nil, nil); got != 6 {
			t.Errorf("room for %d, want 6", got)
		}
	}
}
