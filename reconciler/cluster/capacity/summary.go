package capacity

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podrequests "k8s.io/component-helpers/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/estimate"
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
	node string // empty: none yet
	over bool
	need corev1.ResourceList
}

// TrimNode keeps what counts of a node; anything else passes as it is.
func TrimNode(obj any) (any, error) {
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

// TrimPod keeps what counts of a pod; anything else passes as it is.
func TrimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	return &podNeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion},
		node:       pod.Spec.NodeName,
		over:       pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		need:       podrequests.PodRequests(pod, podrequests.PodResourcesOptions{}),
	}, nil
}

// Totals are what a member's nodes and pods add up to. Its zero value is nothing known.
type Totals struct {
	Nodes     *clusterv1alpha1.NodeSummary
	Resources *clusterv1alpha1.ResourceSummary
	// Models are those that the nodes in Resources were counted by.
	Models []clusterv1alpha1.ResourceModel
}

// Summary adds up what a member's nodes and pods offer and need. The zero value knows neither,
// and it is safe for use by several goroutines.
type Summary struct {
	mu     sync.Mutex
	nodes  Source // none until both are known
	pods   Source
	models []clusterv1alpha1.ResourceModel
	last   Totals
	made   [2]string // the versions of nodes and pods that last was made of
}

// Source is what a watch knows, trimmed by TrimNode or TrimPod, and up to which version.
type Source struct {
	List    func() []any
	Version func() string
}

// Follow tells the Summary where nodes and pods are listed.
func (s *Summary) Follow(nodes, pods Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes, s.pods = nodes, pods
}

// CountBy sets the models that nodes are counted by from now on.
func (s *Summary) CountBy(models []clusterv1alpha1.ResourceModel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !equality.Semantic.DeepEqual(s.models, models) {
		s.models, s.last = models, Totals{}
	}
}

// Totals returns the sums; none while nodes and pods are not known. They are
// shared: not to be changed.
func (s *Summary) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes.List == nil {
		return Totals{}
	}
	if is := [2]string{s.nodes.Version(), s.pods.Version()}; s.last.Nodes == nil || s.made != is {
		s.last, s.made = addUp(s.nodes.List(), s.pods.List(), s.models), is
	}
	return s.last
}

func addUp(nodes, pods []any, models []clusterv1alpha1.ResourceModel) Totals {
	count := &clusterv1alpha1.NodeSummary{}
	allocatable, allocating, allocated := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	free := map[string]corev1.ResourceList{}
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
		if len(models) > 0 {
			free[node.Name] = node.offer.DeepCopy()
		}
	}
	for _, obj := range pods {
		switch pod, ok := obj.(*podNeed); {
		case !ok || pod.over:
		case pod.node == "":
			add(allocating, pod.need)
			add(allocating, onePod)
		default:
			add(allocated, pod.need)
			add(allocated, onePod)
			take(free[pod.node], pod.need)
			take(free[pod.node], onePod)
		}
	}
	return Totals{Nodes: count, Models: models, Resources: &clusterv1alpha1.ResourceSummary{
		Allocatable: orNil(allocatable), Allocating: orNil(allocating), Allocated: orNil(allocated),
		AllocatableModelings: estimate.CountNodes(models, maps.Values(free)),
	}}
}

// onePod is what a pod takes of the places for pods.
var onePod = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}

func add(total, part corev1.ResourceList) {
	for name, amount := range part {
		sum := total[name]
		sum.Add(amount)
		total[name] = sum
	}
}

// take takes what is needed from what is free, of the resources that there are.
func take(free, need corev1.ResourceList) {
	for name, amount := range need {
		if left, ok := free[name]; ok {
			left.Sub(amount)
			free[name] = left
		}
	}
}

func orNil(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return nil
	}
	return list
}
