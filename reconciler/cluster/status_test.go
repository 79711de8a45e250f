package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

func TestTaints(t *testing.T) {
	now := metav1.NewTime(time.Unix(0, 0))
	own := corev1.Taint{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	noExecute := corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoExecute}
	notReady := corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
	unreachable := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
	is := func(s metav1.ConditionStatus) *metav1.Condition { return &metav1.Condition{Status: s} }
	cases := map[string]struct {
		current   []corev1.Taint
		condition *metav1.Condition
		want      []corev1.Taint
	}{
		"never told":                         {nil, nil, []corev1.Taint{notReady}},
		"ready":                              {[]corev1.Taint{own}, is(metav1.ConditionTrue), []corev1.Taint{own}},
		"not ready":                          {[]corev1.Taint{own}, is(metav1.ConditionFalse), []corev1.Taint{own, notReady}},
		"still not ready":                    {[]corev1.Taint{notReady, own}, is(metav1.ConditionFalse), []corev1.Taint{notReady, own}},
		"ready again":                        {[]corev1.Taint{notReady, own, unreachable}, is(metav1.ConditionTrue), []corev1.Taint{own}},
		"silent":                             {[]corev1.Taint{notReady}, is(metav1.ConditionUnknown), []corev1.Taint{unreachable}},
		"a user's taint of the same key":     {[]corev1.Taint{noExecute}, is(metav1.ConditionTrue), []corev1.Taint{noExecute}},
		"a user's taint next to one of ours": {[]corev1.Taint{noExecute}, is(metav1.ConditionFalse), []corev1.Taint{noExecute, notReady}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, taints(tc.current, tc.condition, now)); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddUp(t *testing.T) {
	amount := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	node := func(ready corev1.ConditionStatus, cpu string) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{
			Allocatable: amount(cpu), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		}}
	}
	pod := func(on string, phase corev1.PodPhase, cpu string) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amount(cpu)}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	var nodes, pods []any
	for _, n := range []*corev1.Node{node(corev1.ConditionTrue, "4"), node(corev1.ConditionFalse, "2")} {
		kept, err := trimNode(n)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, kept)
	}
	for _, p := range []*corev1.Pod{
		pod("n1", corev1.PodRunning, "1"), pod("n1", corev1.PodPending, "500m"), pod("", corev1.PodPending, "3"),
		pod("n1", corev1.PodSucceeded, "7"), pod("n1", corev1.PodFailed, "7"),
	} {
		kept, err := trimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, kept)
	}
	count, sums := addUp(nodes, pods)
	if diff := cmp.Diff(&clusterv1alpha1.NodeSummary{TotalNum: 2, ReadyNum: 1}, count); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	want := &clusterv1alpha1.ResourceSummary{
		Allocatable: amount("6"),
		Allocating:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourcePods: resource.MustParse("1")},
		Allocated:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourcePods: resource.MustParse("2")},
	}
	if diff := cmp.Diff(want, sums); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestEnablements(t *testing.T) {
	got := enablements([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod"}, {Name: "pods/log", Kind: "Pod"}, {Name: "configmaps", Kind: "ConfigMap"},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}, {Name: "deployments/scale", Kind: "Scale"}}},
	})
	want := []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}, {Name: "pods", Kind: "Pod"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("enablements (-want +got):\n%s", diff)
	}
}
