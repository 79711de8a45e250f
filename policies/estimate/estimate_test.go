package estimate_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// clusterOf reports the summary, and nodes counted by the models.
func clusterOf(summary *clusterv1alpha1.ResourceSummary, models ...clusterv1alpha1.ResourceModel) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{}
	c.Spec.ResourceModels, c.Status.ResourceSummary = models, summary
	return c
}

func TestReplicas(t *testing.T) {
	node := &clusterv1alpha1.ResourceSummary{
		Allocatable: resources("cpu", "4", "memory", "8Gi", "pods", "110"),
		Allocated:   resources("cpu", "1", "memory", "2Gi", "pods", "10"),
		Allocating:  resources("cpu", "500m", "pods", "1"),
	}
	full := &clusterv1alpha1.ResourceSummary{Allocatable: resources("pods", "10"), Allocated: resources("pods", "12")}
	huge := &clusterv1alpha1.ResourceSummary{Allocatable: resources("cpu", "9e18", "memory", "1e30", "pods", "9e18"), Allocated: resources("pods", "-9e30")}
	cases := map[string]struct {
		summary *clusterv1alpha1.ResourceSummary
		assumed corev1.ResourceList
		request corev1.ResourceList
		want    int32
	}{
		"a cluster that reports nothing has no room":      {summary: nil, want: 0},
		"without requests the pods count":                 {summary: node, want: 99},
		"the scarcest resource decides":                   {summary: node, request: resources("cpu", "1", "memory", "1Gi"), want: 2},
		"in thousandths of a core":                        {summary: node, request: resources("cpu", "250m"), want: 10},
		"a resource that the cluster lacks":               {summary: node, request: resources("nvidia.com/gpu", "1"), want: 0},
		"a request of nothing fits anywhere":              {summary: node, request: resources("nvidia.com/gpu", "0"), want: 99},
		"a request of less than nothing is one of none":   {summary: node, request: resources("cpu", "-1"), want: 99},
		"more pods than allowed is no room":               {summary: full, want: 0},
		"more than an int32":                              {summary: &clusterv1alpha1.ResourceSummary{Allocatable: resources("pods", "9000000000")}, want: math.MaxInt32},
		"what is assumed is not free":                     {summary: node, assumed: resources("cpu", "2", "pods", "4"), request: resources("cpu", "250m"), want: 2},
		"more assumed than there is":                      {summary: node, assumed: resources("cpu", "1e30", "pods", "4"), request: resources("cpu", "250m"), want: 0},
		"an assumption of what the cluster does not have": {summary: node, assumed: resources("disk", "1"), request: resources("disk", "1"), want: 0},
		"quantities beyond reason":                        {summary: huge, request: resources("cpu", "1e30", "memory", "1"), want: 1},
		"a request that is small beside such quantities":  {summary: huge, request: resources("cpu", "1n", "memory", "1m"), want: math.MaxInt32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var req *workv1alpha2.ReplicaRequirements
			if tc.request != nil {
				req = &workv1alpha2.ReplicaRequirements{ResourceRequest: tc.request}
			}
			capacity := estimate.NewCapacity(clusterOf(tc.summary)).Less(&estimate.Load{Resources: tc.assumed})
			if got := capacity.Fits(estimate.NeedOf(req)); got != tc.want {
				t.Errorf("room for %d, want %d", got, tc.want)
			}
		})
	}
}

// Quantities over 64 bits are held by reference.
func TestNewCapacityChangesNothing(t *testing.T) {
	c := clusterOf(&clusterv1alpha1.ResourceSummary{
		Allocatable: resources("pods", "18446744073709551616"),
		Allocated:   resources("pods", "18446744073709551610"),
	})
	for range 2 {
		if got := estimate.NewCapacity(c).Fits(estimate.NeedOf(nil)); got != 6 {
			t.Errorf("room for %d, want 6", got)
		}
	}
}

// grade is a size of nodes, by what they have free at least.
func grade(n uint, pairs ...string) clusterv1alpha1.ResourceModel {
	m := clusterv1alpha1.ResourceModel{Grade: n}
	for i := 0; i < len(pairs); i += 2 {
		m.Ranges = append(m.Ranges, clusterv1alpha1.ResourceModelRange{
			Name: corev1.ResourceName(pairs[i]), Min: resource.MustParse(pairs[i+1]),
		})
	}
	return m
}

func component(name string, n int32, pairs ...string) workv1alpha2.Component {
	return workv1alpha2.Component{
		Name: name, Replicas: n,
		ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: resources(pairs...)},
	}
}

func TestNodesAndSets(t *testing.T) {
	models := []clusterv1alpha1.ResourceModel{grade(0, "cpu", "0", "memory", "0"), grade(1, "cpu", "2", "memory", "4Gi"), grade(2, "cpu", "8", "memory", "16Gi")}
	counted := func(ns ...int) *clusterv1alpha1.ResourceSummary {
		s := &clusterv1alpha1.ResourceSummary{Allocatable: resources("cpu", "100", "memory", "100Gi", "pods", "1000", "nvidia.com/gpu", "3")}
		for g, n := range ns {
			s.AllocatableModelings = append(s.AllocatableModelings, clusterv1alpha1.AllocatableModeling{Grade: uint(g), Count: n})
		}
		return s
	}
	one := func(pairs ...string) estimate.Need {
		return estimate.NeedOf(&workv1alpha2.ReplicaRequirements{ResourceRequest: resources(pairs...)})
	}
	set := func(cs ...workv1alpha2.Component) estimate.Need { return estimate.NeedOfSet(cs) }
	flink := set(component("jobmanager", 1, "cpu", "2"), component("taskmanager", 2, "cpu", "4"))
	cases := map[string]struct {
		summary *clusterv1alpha1.ResourceSummary
		assumed estimate.Load
		need    estimate.Need
		want    int32
	}{
		"without counted nodes the sums decide":                     {summary: counted(), need: one("cpu", "3"), want: 33},
		"a replica fits where a node has enough at least":           {summary: counted(5, 3, 2), need: one("cpu", "3"), want: 4},
		"no node is large enough although the sum would be":         {summary: counted(5, 3, 2), need: one("cpu", "9"), want: 0},
		"every resource must fit on the node":                       {summary: counted(0, 3, 2), need: one("cpu", "1", "memory", "4Gi"), want: 3 + 8},
		"what is not known by node counts by the sum":               {summary: counted(0, 3, 2), need: one("cpu", "1", "nvidia.com/gpu", "1"), want: 3},
		"a node takes 110 pods":                                     {summary: counted(0, 1), need: one("cpu", "1m"), want: 110},
		"nodes without requests":                                    {summary: counted(2, 1), need: estimate.NeedOf(nil), want: 330},
		"nothing was counted":                                       {summary: counted(0, 0, 0), need: one("cpu", "1"), want: 0},
		"a size that there is not is no reason to trust the others": {summary: counted(0, 0, 0, 7), need: one("cpu", "3"), want: 33},
		"fewer nodes than none are none":                            {summary: counted(0, -4, 1), need: one("cpu", "2"), want: 4},
		"more nodes than there can be":                              {summary: counted(0, math.MaxInt), need: one("cpu", "1"), want: 100},
		"what is assumed is kept on the smallest nodes first":       {summary: counted(0, 2, 1), assumed: estimate.LoadOf(3, &workv1alpha2.ReplicaRequirements{ResourceRequest: resources("cpu", "1")}), need: one("cpu", "2"), want: 4},
		"a set needs room for all of its parts":                     {summary: counted(), need: flink, want: 10},
		"a set on nodes, a part at a time":                          {summary: counted(0, 3, 2), need: flink, want: 2},
		"a part that fits on no node":                               {summary: counted(0, 9), need: flink, want: 0},
		"as many sets as pods allow":                                {summary: counted(), need: set(component("a", 30), component("b", 70)), want: 10},
		"many small sets on nodes":                                  {summary: counted(0, 10, 9), need: set(component("a", 1, "cpu", "500m"), component("b", 1, "cpu", "500m")), want: 10*2 + 9*8},
		"one part alone":                                            {summary: counted(0, 3, 2), need: set(component("a", 3, "cpu", "2")), want: (3 + 8) / 3},
		"parts of no or fewer replicas do not count":                {summary: counted(), need: set(component("a", 0, "cpu", "999"), component("b", -5, "cpu", "1"), component("c", 1, "cpu", "1")), want: 100},
		"a set of nothing fits anywhere":                            {summary: counted(), need: set(component("a", 0)), want: math.MaxInt32},
		"replicas beyond reason":                                    {summary: counted(0, 3), need: set(component("a", math.MaxInt32, "cpu", "1e18"), component("b", math.MaxInt32, "cpu", "1e18")), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			capacity := estimate.NewCapacity(clusterOf(tc.summary, models...)).Less(&tc.assumed)
			if got := capacity.Fits(tc.need); got != tc.want {
				t.Errorf("room for %d, want %d", got, tc.want)
			}
		})
	}
	unmodelled := estimate.NewCapacity(clusterOf(counted(5, 3, 2), models...)).WithoutNodes()
	if got := unmodelled.Fits(one("cpu", "9")); got != 11 {
		t.Errorf("without nodes there is room for %d, want 11", got)
	}
}

func TestLoad(t *testing.T) {
	req := &workv1alpha2.ReplicaRequirements{ResourceRequest: resources("cpu", "500m", "pods", "9")}
	set := []workv1alpha2.Component{component("a", 2, "cpu", "1"), component("b", 1, "memory", "1Gi"), {Name: "c", Replicas: 1}}
	text := func(l estimate.Load) map[string]string {
		out := map[string]string{}
		for name, q := range l.Resources {
			out[string(name)] = q.String()
		}
		return out
	}
	cases := map[string]struct {
		load estimate.Load
		want map[string]string
	}{
		"replicas, a pod each": {estimate.LoadOf(3, req), map[string]string{"cpu": "1500m", "pods": "3"}},
		"no replicas":          {estimate.LoadOf(-1, req), map[string]string{}},
		"a set":                {estimate.LoadOfSet(set), map[string]string{"cpu": "2", "memory": "1Gi", "pods": "4"}},
		"two sets":             {estimate.LoadOfSet(set).Times(2), map[string]string{"cpu": "4", "memory": "2Gi", "pods": "8"}},
		"no set":               {estimate.LoadOfSet(set).Times(0), map[string]string{}},
		"both":                 {estimate.LoadOf(3, req).Plus(estimate.LoadOf(1, req)), map[string]string{"cpu": "2", "pods": "4"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(tc.load)); diff != "" {
				t.Errorf("load (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCapacity holds for whatever a cluster reports: capacity is never negative, an
// assumption never makes capacity, what fits also fits one at a time, and neither
// nodes nor more parts make capacity.
func FuzzCapacity(f *testing.F) {
	f.Add("4", "1", "500m", "2", "1", int64(3), int32(2))
	f.Add("9e18", "-9e18", "1n", "1e30", "0", int64(math.MaxInt64), int32(math.MaxInt32))
	f.Add("0", "0", "0", "-1", "1", int64(-1), int32(-7))
	f.Add("100", "0", "1500m", "2", "500m", int64(40), int32(3))
	f.Fuzz(func(t *testing.T, allocatable, allocated, request, nodeFree, other string, count int64, n int32) {
		have, err1 := resource.ParseQuantity(allocatable)
		used, err2 := resource.ParseQuantity(allocated)
		want, err3 := resource.ParseQuantity(request)
		free, err4 := resource.ParseQuantity(nodeFree)
		wantOther, err5 := resource.ParseQuantity(other)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			t.Skip()
		}
		c := clusterOf(&clusterv1alpha1.ResourceSummary{
			Allocatable:          corev1.ResourceList{"cpu": have, "pods": have},
			Allocated:            corev1.ResourceList{"cpu": used},
			AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 1, Count: int(count)}, {Grade: 0, Count: 1}},
		}, clusterv1alpha1.ResourceModel{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: "cpu", Min: free}}}, grade(0, "cpu", "1"))
		req := &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": want}}
		parts := []workv1alpha2.Component{
			{Name: "a", Replicas: n, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: req.ResourceRequest}},
			{Name: "b", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": wantOther}}},
		}
		capacity := estimate.NewCapacity(c)
		load := estimate.LoadOf(n, req)
		if want.Sign() < 0 {
			load = estimate.LoadOf(n, nil)
		}
		for name, need := range map[string]estimate.Need{"replicas": estimate.NeedOf(req), "sets": estimate.NeedOfSet(parts)} {
			fits, sums, assumed := capacity.Fits(need), capacity.WithoutNodes().Fits(need), capacity.Less(&load).Fits(need)
			if fits < 0 || fits > sums {
				t.Errorf("%s: room for %d, by sums for %d", name, fits, sums)
			}
			if name == "replicas" && assumed > fits {
				t.Errorf("%s: an assumption makes room for %d of %d", name, assumed, fits)
			}
		}
		if n > 0 {
			if sets, single := capacity.Fits(estimate.NeedOfSet(parts)), capacity.Fits(estimate.NeedOf(req)); sets > single {
				t.Errorf("room for %d sets, but for %d of one part", sets, single)
			}
		}
	})
}
