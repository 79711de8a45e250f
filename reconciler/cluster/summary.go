package cluster

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podrequests "k8s.io/component-helpers/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// nodeOffer is what is kept of a node.
type nodeOffer struct {
	metav1.ObjectMeta
	ready bool
	offer corev1.ResourceList
}

// podNeed is what is kept of a pod.
type podNeed struct {
	metav1.ObjectMeta
	placed, over bool
	need         corev1.ResourceList
}

// trimNode keeps what counts of a node; anything else passes as it is.
func trimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	out := &nodeOffer{ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion}, offer: node.Status.Allocatable}
	for _, c := range node.Status.Conditions {
		out.ready = out.ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	return out, nil
}

// trimPod keeps what counts of a pod; anything else passes as it is.
func trimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	return &podNeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion},
		placed:     pod.Spec.NodeName != "",
		over:       pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		need:       podrequests.PodRequests(pod, podrequests.PodResourcesOptions{}),
	}, nil
}

// summary adds up what a member's nodes and pods offer and need.
type summary struct {
	mu    sync.Mutex
	nodes func() []any // nil until nodes and pods are known
	pods  func() []any
}

// known tells the summary where nodes and pods are listed.
func (s *summary) known(nodes, pods func() []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes, s.pods = nodes, pods
}

// sums returns the sums, and nil while nodes and pods are not known.
func (s *summary) sums() (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	s.mu.Lock()
	nodes, pods := s.nodes, s.pods
	s.mu.Unlock()
	if nodes == nil {
		return nil, nil
	}
	return addUp(nodes(), pods())
}

func addUp(nodes, pods []any) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	count := &clusterv1alpha1.NodeSummary{}
	allocatable, allocating, allocated := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, obj := range nodes {
		node, ok := obj.(*nodeOffer)
		if !ok {
			continue
		}
		count.TotalNum++
		if node.ready {
			count.ReadyNum++
		}
		add(allocatable, node.offer)
	}
	waiting, running := int64(0), int64(0)
	for _, obj := range pods {
		switch pod, ok := obj.(*podNeed); {
		case !ok:
		case !pod.placed && !pod.over:
			add(allocating, pod.need)
			waiting++
		case pod.placed && !pod.over:
			add(allocated, pod.need)
			running++
		}
	}
	addPods(allocating, waiting)
	addPods(allocated, running)
	return count, &clusterv1alpha1.ResourceSummary{
		Allocatable: orNil(allocatable), Allocating: orNil(allocating), Allocated: orNil(allocated),
	}
}

func add(total, part corev1.ResourceList) {
	for name, amount := range part {
		sum := total[name]
		sum.Add(amount)
		total[name] = sum
	}
}

func addPods(total corev1.ResourceList, count int64) {
	if count > 0 {
		total[corev1.ResourcePods] = *resource.NewQuantity(count, resource.DecimalSI)
	}
}

func orNil(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return nil
	}
	return list
}
