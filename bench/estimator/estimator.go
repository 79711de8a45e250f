package estimator

import (
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
)

const (
	nodeCount = 5_000
	podCount  = 50_000
	questions = 1_000
)

// Measure fills a cluster and asks what fits there.
func Measure(r *results.Report) error {
	tracker, store := &capacity.Tracker{}, cache.NewStore(cache.MetaNamespaceKeyFunc)
	for i := range nodeCount {
		if err := deliver(tracker.Nodes(), nil, capacity.TrimNode, node(i)); err != nil {
			return err
		}
	}
	before := heap()
	for i := range podCount {
		if err := deliver(tracker.Pods(), store, capacity.TrimPod, pod(i)); err != nil {
			return err
		}
	}
	perPod := float64(heap()-before) / podCount
	tracker.Known()
	r.AtMost("estimator", "kept of each of 50,000 pods", perPod, "B", 1024)
	samples := map[string][]float64{}
	for _, kind := range []struct {
		name string
		ask  func(i int) (*nodes.Ask, error)
		goal float64
	}{
		{"replicas, with and without a node selector and what was placed just now", replicas, 1},
		{"sets of two components", sets, 0},
	} {
		begin := time.Now()
		for i := range questions {
			one := time.Now()
			ask, err := kind.ask(i)
			if err != nil {
				return err
			}
			if n, err := tracker.Most(ask, nodes.Resources{}, nodes.Quotas{}); err != nil || n == 0 {
				return fmt.Errorf("nothing fits: %d, %w", n, err)
			}
			samples[kind.name] = append(samples[kind.name], float64(time.Since(one).Microseconds())/1000)
		}
		name := "1,000 questions about 5,000 nodes and 50,000 pods: " + kind.name
		if took := time.Since(begin).Seconds(); kind.goal > 0 {
			r.AtMost("estimator", name, took, "s", kind.goal)
		} else {
			r.Note("estimator", name, took, "s")
		}
	}
	runtime.KeepAlive(store)
	return r.Raw("estimator", samples)
}

// deliver hands an object to a watch's handler, trimmed as the store keeps it; a nil store keeps nothing.
func deliver(handler cache.ResourceEventHandler, store cache.Store, trim cache.TransformFunc, obj any) error {
	kept, err := trim(obj)
	if err != nil {
		return err
	}
	handler.OnAdd(kept, true)
	if store == nil {
		return nil
	}
	return store.Add(kept)
}

func node(i int) *corev1.Node {
	name := fmt.Sprintf("node-%05d", i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: fmt.Sprint("zone-", i%3), corev1.LabelInstanceTypeStable: fmt.Sprint("size-", i%4),
	}}}
	n.Status.Allocatable = list("16", "64Gi")
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	if i%50 == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func pod(i int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprint("team-", i%40), Name: fmt.Sprintf("web-%d-6f7d8c9b5-x2k4q", i), ResourceVersion: fmt.Sprint(1_000_000 + i),
		Labels:          map[string]string{"app": "web", "pod-template-hash": "6f7d8c9b5"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6f7d8c9b5", Controller: ptr.To(true)}},
	}}
	p.Spec.NodeName = fmt.Sprintf("node-%05d", i%nodeCount)
	p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: list(fmt.Sprint(100*(1+i%13), "m"), fmt.Sprint(128*(1+i%7), "Mi"))}}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	return p
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// component is one that asks for more each time.
func component(i int, replicas int32) workv1alpha2.Component {
	return workv1alpha2.Component{Replicas: replicas, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
		ResourceRequest: list(fmt.Sprint(100+i%900, "m"), fmt.Sprint(256+i%700, "Mi")),
	}}
}

func replicas(i int) (*nodes.Ask, error) {
	one := component(i, 1).ReplicaRequirements
	need := &workv1alpha2.ReplicaRequirements{Namespace: "team-1", ResourceRequest: one.ResourceRequest}
	switch i % 3 {
	case 1:
		need.NodeClaim = &workv1alpha2.NodeClaim{NodeSelector: map[string]string{corev1.LabelTopologyZone: "zone-1"}}
	case 2:
		return nodes.AskForReplicas(need, []estimate.Assumed{{Namespace: "team-1", Components: []workv1alpha2.Component{component(i+7, 200)}}})
	}
	return nodes.AskForReplicas(need, nil)
}

func sets(i int) (*nodes.Ask, error) {
	return nodes.AskForSets("team-1", []workv1alpha2.Component{component(i, 1), component(2*i, 3)}, nil)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
