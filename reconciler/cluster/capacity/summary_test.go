package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

func TestAddUp(t *testing.T) {
	amount := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	with := func(cpu, pods string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(pods)}
	}
	node := func(name string, ready corev1.ConditionStatus, cpu, pods string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Allocatable: with(cpu, pods), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		}}
	}
	pod := func(on string, phase corev1.PodPhase, cpu string) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amount(cpu)}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	var nodes, pods []any
	for _, n := range []*corev1.Node{
		node("n1", corev1.ConditionTrue, "4", "10"), node("n2", corev1.ConditionFalse, "2", "10"), node("full", corev1.ConditionTrue, "4", "1"),
	} {
		kept, err := TrimNode(n)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, kept)
	}
	for _, p := range []*corev1.Pod{
		pod("n1", corev1.PodRunning, "1"), pod("n1", corev1.PodPending, "1500m"), pod("", corev1.PodPending, "3"),
		pod("n1", corev1.PodSucceeded, "7"), pod("n1", corev1.PodFailed, "7"), pod("full", corev1.PodRunning, "1"), pod("gone", corev1.PodRunning, "1"),
	} {
		kept, err := TrimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, kept)
	}
	models := []clusterv1alpha1.ResourceModel{
		{Grade: 0, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: corev1.ResourceCPU, Max: resource.MustParse("2")}}},
		{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: corev1.ResourceCPU, Min: resource.MustParse("2"), Max: resource.MustParse("1000")}}},
	}
	want := Totals{
		Nodes: &clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2},
		Resources: &clusterv1alpha1.ResourceSummary{
			Allocatable: with("10", "21"), Allocating: with("3", "1"), Allocated: with("4500m", "4"),
			AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 1}, {Grade: 1, Count: 1}},
		},
		Models: models,
	}
	if diff := cmp.Diff(want, addUp(nodes, pods, models)); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if free := nodes[0].(*nodeOffer).offer; free.Cpu().String() != "4" {
		t.Errorf("counting took %s from what the node offers", free.Cpu())
	}
}

func TestNodesAreCountedAgainOnlyWhenSomethingChanged(t *testing.T) {
	listed, version := 0, "1"
	s := &Summary{}
	if s.Totals().Nodes != nil {
		t.Error("sums of what is not known")
	}
	list := func() []any {
		listed++
		return []any{&nodeOffer{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, offer: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
	}
	s.Follow(Source{list, func() string { return version }}, Source{func() []any { return nil }, func() string { return "" }})
	models := func(grade uint) []clusterv1alpha1.ResourceModel {
		return []clusterv1alpha1.ResourceModel{{Grade: grade}}
	}
	var got []clusterv1alpha1.AllocatableModeling
	for _, change := range []func(){
		func() {}, func() {}, func() { s.CountBy(models(3)) }, func() { s.CountBy(models(3)) }, func() { version = "2" }, func() { s.CountBy(models(4)) },
	} {
		change()
		got = append(got, s.Totals().Resources.AllocatableModelings...)
	}
	want := []clusterv1alpha1.AllocatableModeling{{Grade: 3, Count: 1}, {Grade: 3, Count: 1}, {Grade: 3, Count: 1}, {Grade: 4, Count: 1}}
	if diff := cmp.Diff(want, got); diff != "" || listed != 4 {
		t.Errorf("counted %d times, want 4; (-want +got):\n%s", listed, diff)
	}
}
