package capacity

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

func cpu(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

func kept(t *testing.T, trim cache.TransformFunc, obj any) any {
	t.Helper()
	out, err := trim(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func aPod(name, on, requests string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu(requests)}}}},
	}
}

// TestRoomFollowsWatches reports what a member has, as its watches would.
func TestRoomFollowsWatches(t *testing.T) {
	more, changes := false, 0
	r := &Tracker{More: func() { more = true }, Changed: func() { changes++ }}
	ask, err := nodes.AskForReplicas(&workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: cpu("1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Most(ask, nodes.Resources{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("before anything is known: %v", err)
	}
	if err := r.Read(func(*nodes.Index) { t.Error("it is looked at before anything is known") }); !errors.Is(err, ErrUnknown) {
		t.Errorf("before anything is known: %v", err)
	}
	r.Nodes().OnDelete(kept(t, TrimNode, &corev1.Node{}))
	if changes != 0 {
		t.Error("a change is told of before anything is known")
	}
	r.Known()
	if changes != 1 {
		t.Errorf("that all is known now is told %d times", changes)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")},
	}}
	cordoned := node.DeepCopy()
	cordoned.Spec.Unschedulable = true
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: cpu("1"), Used: cpu("0")}}
	is := func(trim cache.TransformFunc, obj any) any { return kept(t, trim, obj) }
	done := aPod("p1", "n1", "3")
	done.Status.Phase = corev1.PodSucceeded
	for _, step := range []struct {
		what string
		do   func()
		want int32
		more bool
	}{
		{"a node comes", func() { r.Nodes().OnAdd(is(TrimNode, node), true) }, 4, false},
		{"a pod takes most of it", func() { r.Pods().OnAdd(is(TrimPod, aPod("p1", "n1", "3")), false) }, 1, false},
		{"it is over", func() { r.Pods().OnUpdate(is(TrimPod, aPod("p1", "n1", "3")), is(TrimPod, done)) }, 4, false},
		{"another comes", func() { r.Pods().OnAdd(is(TrimPod, aPod("p2", "n1", "2")), false) }, 2, false},
		{"a quota leaves less", func() { r.Quotas().OnAdd(is(TrimQuota, quota), false) }, 1, false},
		{"the quota goes", func() { r.Quotas().OnDelete(is(TrimQuota, quota)) }, 2, true},
		{"the node is cordoned", func() { r.Nodes().OnUpdate(is(TrimNode, node), is(TrimNode, cordoned)) }, 0, true},
		{"and is not any more", func() { r.Nodes().OnUpdate(is(TrimNode, cordoned), is(TrimNode, node)) }, 2, true},
		{"a pod went while nobody watched", func() {
			r.Pods().OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/p2", Obj: is(TrimPod, aPod("p2", "n1", "2"))})
		}, 4, false},
		{"the node goes", func() { r.Nodes().OnDelete(is(TrimNode, node)) }, 0, false},
	} {
		more, changes = false, 0
		step.do()
		if changes != 1 {
			t.Errorf("%s: it is told of %d times, want once", step.what, changes)
		}
		if more != step.more {
			t.Errorf("%s: more may fit: %t, want %t", step.what, more, step.more)
		}
		if got, err := r.Most(ask, nodes.Resources{}, nodes.Quotas{}); err != nil || got != step.want {
			t.Errorf("%s: %d fit (%v), want %d", step.what, got, err, step.want)
		}
		var most int32
		if err := r.Read(func(x *nodes.Index) { most = nodes.Most(x, ask, nodes.Resources{}, nodes.Quotas{}) }); err != nil || most != step.want {
			t.Errorf("%s: who looks sees %d fit (%v), want %d", step.what, most, err, step.want)
		}
	}
}

// TestPodsThatWaitAreKnownByTheirWorkload has a pod of a Deployment find no node.
func TestPodsThatWaitAreKnownByTheirWorkload(t *testing.T) {
	now := time.Unix(1000, 0)
	waits := aPod("web-abc-1", "", "9")
	waits.Labels = map[string]string{"pod-template-hash": "abc"}
	waits.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-abc", Controller: ptr.To(true)}}
	waits.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Minute))}}
	leaving := waits.DeepCopy()
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	r := &Tracker{}
	r.Known()
	r.Pods().OnAdd(kept(t, TrimPod, waits), false)
	of := workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	count := func(threshold time.Duration) int32 {
		n, err := r.Unschedulable(of, threshold, now)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := [2]int32{count(5 * time.Minute), count(6 * time.Minute)}; got != [2]int32{1, 0} {
		t.Errorf("%v wait for 5 and 6 minutes, want 1 and 0", got)
	}
	r.Pods().OnUpdate(kept(t, TrimPod, waits), kept(t, TrimPod, leaving))
	if got := count(0); got != 0 {
		t.Errorf("%d wait of one that is being deleted", got)
	}
}

// TestAPodTakesOneKilobyte keeps pods as a watch does.
func TestAPodTakesOneKilobyte(t *testing.T) {
	const pods = 20_000
	store, r := cache.NewStore(cache.MetaNamespaceKeyFunc), &Tracker{}
	before := heap()
	for i := range pods {
		p := aPod(fmt.Sprintf("web-%d-6f7d8c9b5-x2k4q", i), fmt.Sprint("node-", i%2000), "250m")
		p.ResourceVersion = fmt.Sprint(100_000 + i)
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("512Mi")
		p.Annotations = map[string]string{"big": fmt.Sprintf("%01000d", i)}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		obj := kept(t, TrimPod, p)
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
		r.Pods().OnAdd(obj, true)
	}
	each := (heap() - before) / pods
	t.Logf("%d bytes per pod", each)
	if each > 1024 {
		t.Errorf("a pod takes %d bytes, at most 1024 are allowed", each)
	}
	runtime.KeepAlive(store)
	runtime.KeepAlive(r)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
