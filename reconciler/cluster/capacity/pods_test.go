package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// TestPodsThatCount: all but those that are over take of what a node has, as Karmada's estimator counts.
func TestPodsThatCount(t *testing.T) {
	ask, err := nodes.AskForReplicas(&workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: cpu("1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")},
	}}
	got := map[corev1.PodPhase]int32{}
	for _, phase := range []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodUnknown, corev1.PodSucceeded, corev1.PodFailed} {
		pod := aPod("p", "n1", "3")
		pod.Status.Phase = phase
		r := &Tracker{}
		r.Known()
		r.Nodes().OnAdd(kept(t, TrimNode, node), true)
		r.Pods().OnAdd(kept(t, TrimPod, pod), true)
		if got[phase], err = r.Most(ask, nodes.Resources{}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[corev1.PodPhase]int32{"": 1, corev1.PodPending: 1, corev1.PodRunning: 1, corev1.PodUnknown: 1, corev1.PodSucceeded: 4, corev1.PodFailed: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what fits beside a pod of a phase (-want +got):\n%s", diff)
	}
}

// TestPodsThatFindNoNode are those that the cluster's scheduler has given up, and none that it has not looked at, or will not.
func TestPodsThatFindNoNode(t *testing.T) {
	now := time.Unix(1000, 0)
	of := workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		condition corev1.PodCondition
		node      string
		want      int32
	}{
		"no node fits":                         {condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}, want: 1},
		"somebody holds it back":               {condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}},
		"the scheduler failed":                 {condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError}},
		"it has one":                           {condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: corev1.PodReasonUnschedulable}},
		"it has one, and the condition is old": {condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}, node: "n1"},
		"another condition says so":            {condition: corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}},
		"nobody has looked at it":              {},
	} {
		pod := aPod("web-abc-1", tc.node, "9")
		pod.Labels = map[string]string{"pod-template-hash": "abc"}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-abc", Controller: ptr.To(true)}}
		if tc.condition.Type != "" {
			tc.condition.LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
			pod.Status.Conditions = []corev1.PodCondition{tc.condition}
		}
		r := &Tracker{}
		r.Known()
		r.Pods().OnAdd(kept(t, TrimPod, pod), true)
		if got, err := r.Unschedulable(of, time.Minute, now); err != nil || got != tc.want {
			t.Errorf("%s: %d wait (%v), want %d", name, got, err, tc.want)
		}
	}
}
