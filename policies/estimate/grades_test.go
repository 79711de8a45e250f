package estimate_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/validate"
)

func TestCountNodes(t *testing.T) {
	node := func(cpu, memory, pods string) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods),
		}
	}
	counts := func(of map[uint]int) []clusterv1alpha1.AllocatableModeling {
		var out []clusterv1alpha1.AllocatableModeling
		for grade := range uint(9) {
			out = append(out, clusterv1alpha1.AllocatableModeling{Grade: grade, Count: of[grade]})
		}
		return out
	}
	unsorted := validate.DefaultModels()
	slices.Reverse(unsorted)
	cases := map[string]struct {
		models []clusterv1alpha1.ResourceModel
		nodes  []corev1.ResourceList
		want   []clusterv1alpha1.AllocatableModeling
	}{
		"without models nothing is counted":  {nil, []corev1.ResourceList{node("4", "8Gi", "10")}, nil},
		"without nodes all grades are empty": {validate.DefaultModels(), nil, counts(nil)},
		"a node at the start of a grade is in it, one a little short of it is not": {
			validate.DefaultModels(), []corev1.ResourceList{node("4", "32Gi", "10"), node("3999m", "32Gi", "10"), node("4", "34359738367", "10")},
			counts(map[uint]int{3: 1, 2: 2}),
		},
		"what a node is shortest of decides": {
			validate.DefaultModels(), []corev1.ResourceList{node("64", "5Gi", "10"), node("500m", "2Ti", "10")}, counts(map[uint]int{1: 1, 0: 1}),
		},
		"the last grade has no end": {
			validate.DefaultModels(), []corev1.ResourceList{node("100000", "64Pi", "10")}, counts(map[uint]int{8: 1}),
		},
		"a full node is not counted, and those after it are": {
			validate.DefaultModels(), []corev1.ResourceList{node("4", "32Gi", "0"), node("4", "32Gi", "-1"), node("4", "32Gi", "1")}, counts(map[uint]int{3: 1}),
		},
		"a node that says nothing about pods takes none": {
			validate.DefaultModels(), []corev1.ResourceList{{corev1.ResourceCPU: resource.MustParse("4")}}, counts(nil),
		},
		"an overcommitted node is of the smallest grade": {
			validate.DefaultModels(), []corev1.ResourceList{node("-2", "32Gi", "10")}, counts(map[uint]int{0: 1}),
		},
		"the order of the models does not matter": {
			unsorted, []corev1.ResourceList{node("4", "32Gi", "10")}, counts(map[uint]int{3: 1}),
		},
		"a resource that a node does not have is none of it": {
			[]clusterv1alpha1.ResourceModel{
				{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: "example.com/gpu", Max: resource.MustParse("1")}}},
				{Grade: 7, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: "example.com/gpu", Min: resource.MustParse("1"), Max: *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)}}},
			},
			[]corev1.ResourceList{node("4", "32Gi", "10"), {corev1.ResourcePods: resource.MustParse("1"), "example.com/gpu": resource.MustParse("2")}},
			[]clusterv1alpha1.AllocatableModeling{{Grade: 1, Count: 1}, {Grade: 7, Count: 1}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, estimate.CountNodes(tc.models, slices.Values(tc.nodes))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was counted never promises more than there is.
func TestCountedNodesPromiseNoMoreThanTheyHave(t *testing.T) {
	models := validate.DefaultModels()
	free := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7"), corev1.ResourceMemory: resource.MustParse("40Gi"), corev1.ResourcePods: resource.MustParse("20")}
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Spec.ResourceModels = models
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: free, AllocatableModelings: estimate.CountNodes(models, slices.Values([]corev1.ResourceList{free})),
	}
	need := estimate.NeedOf(&workv1alpha2.ReplicaRequirements{ResourceRequest: resources("cpu", "1500m", "memory", "1Gi")})
	capacity := estimate.NewCapacity(cluster)
	if byNodes, bySums := capacity.Fits(need), capacity.WithoutNodes().Fits(need); byNodes != 2 || bySums != 4 {
		t.Errorf("%d fit by nodes and %d by sums, want 2 and 4", byNodes, bySums)
	}
}
