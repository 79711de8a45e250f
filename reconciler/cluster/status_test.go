package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members/informer"
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
		kept, err := trimNode(n)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, kept)
	}
	for _, p := range []*corev1.Pod{
		pod("n1", corev1.PodRunning, "1"), pod("n1", corev1.PodPending, "1500m"), pod("", corev1.PodPending, "3"),
		pod("n1", corev1.PodSucceeded, "7"), pod("n1", corev1.PodFailed, "7"), pod("full", corev1.PodRunning, "1"), pod("gone", corev1.PodRunning, "1"),
	} {
		kept, err := trimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, kept)
	}
	models := []clusterv1alpha1.ResourceModel{
		{Grade: 0, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: corev1.ResourceCPU, Max: resource.MustParse("2")}}},
		{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: corev1.ResourceCPU, Min: resource.MustParse("2"), Max: resource.MustParse("1000")}}},
	}
	want := totals{
		nodes: &clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2},
		resources: &clusterv1alpha1.ResourceSummary{
			Allocatable: with("10", "21"), Allocating: with("3", "1"), Allocated: with("4500m", "4"),
			AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 1}, {Grade: 1, Count: 1}},
		},
		models: models,
	}
	if diff := cmp.Diff(want, addUp(nodes, pods, models), cmp.AllowUnexported(totals{})); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if free := nodes[0].(*nodeOffer).offer; free.Cpu().String() != "4" {
		t.Errorf("counting took %s from what the node offers", free.Cpu())
	}
}

func TestNodesAreCountedAgainOnlyWhenSomethingChanged(t *testing.T) {
	listed, version := 0, "1"
	s := &summary{}
	if s.sums().nodes != nil {
		t.Error("sums of what is not known")
	}
	list := func() []any {
		listed++
		return []any{&nodeOffer{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, offer: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
	}
	s.known(seen{list, func() string { return version }}, seen{func() []any { return nil }, func() string { return "" }})
	models := func(grade uint) []clusterv1alpha1.ResourceModel {
		return []clusterv1alpha1.ResourceModel{{Grade: grade}}
	}
	var got []clusterv1alpha1.AllocatableModeling
	for _, change := range []func(){
		func() {}, func() {}, func() { s.countBy(models(3)) }, func() { s.countBy(models(3)) }, func() { version = "2" }, func() { s.countBy(models(4)) },
	} {
		change()
		got = append(got, s.sums().resources.AllocatableModelings...)
	}
	want := []clusterv1alpha1.AllocatableModeling{{Grade: 3, Count: 1}, {Grade: 3, Count: 1}, {Grade: 3, Count: 1}, {Grade: 4, Count: 1}}
	if diff := cmp.Diff(want, got); diff != "" || listed != 4 {
		t.Errorf("counted %d times, want 4; (-want +got):\n%s", listed, diff)
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

// TestWhatCannotBeRead: kinds that the member does not let be read are told of, a few by
// name, and no longer once they can.
func TestWhatCannotBeRead(t *testing.T) {
	var kinds []informer.Blind
	for _, kind := range []string{"A", "B", "C", "D", "E", "F", "G"} {
		kinds = append(kinds, informer.Blind{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, Why: "no"})
	}
	text := unreadText(kinds)
	const want = "some of its objects cannot be read, so that what is shown of them may be out of date: A.apps: no; B.apps: no; C.apps: no; D.apps: no; E.apps: no; and 2 more kinds"
	if text != want || unreadText(nil) != "" {
		t.Errorf("it says %q, want %q", text, want)
	}
	r := New(nil, nil, nil, nil, Options{})
	s := &state{cluster: &clusterv1alpha1.Cluster{}, seen: &observation{outcome: outcome{ready: true}, unread: text}}
	for _, want := range []string{text, ""} {
		s.seen.unread = want
		if _, err := r.describe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		got := ""
		if c := meta.FindStatusCondition(s.status.Conditions, clusterv1alpha1.ClusterConditionObjectsUnread); c != nil && c.Status == metav1.ConditionTrue {
			got = c.Message
		}
		if got != want {
			t.Errorf("the condition says %q, want %q", got, want)
		}
		s.cluster.Status = *s.status
	}
}
