package capacity

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

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

// Follow sets where nodes and pods are listed.
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

func addUp(all, pods []any, models []clusterv1alpha1.ResourceModel) Totals {
	count := &clusterv1alpha1.NodeSummary{}
	allocatable, allocating, allocated := corev1.ResourceList{}, amounts{}, amounts{}
	requested := map[string]amounts{} // by node
	free := map[string]corev1.ResourceList{}
	for _, obj := range all {
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
			free[node.ObjectMeta.Name], requested[node.ObjectMeta.Name] = node.offer.DeepCopy(), amounts{}
		}
	}
	for _, obj := range pods {
		switch pod, ok := obj.(*podNeed); {
		case !ok || pod.Over:
		case pod.Node == "":
			allocating.add(pod.Requests)
		default:
			allocated.add(pod.Requests)
			if on, counted := requested[pod.Node]; counted {
				on.add(pod.Requests)
			}
		}
	}
	for name, on := range requested {
		take(free[name], on.list())
	}
	return Totals{Nodes: count, Models: models, Resources: &clusterv1alpha1.ResourceSummary{
		Allocatable: orNil(allocatable), Allocating: orNil(allocating.list()), Allocated: orNil(allocated.list()),
		AllocatableModelings: estimate.CountNodes(models, maps.Values(free)),
	}}
}

// amounts are sums over pods, in the units of estimate.Amount.
type amounts map[corev1.ResourceName]int64

// add adds a pod that requests so much, itself included.
func (a amounts) add(requests nodes.Amounts) {
	for _, r := range requests {
		a[r.Name] += r.N
	}
	a[corev1.ResourcePods]++
}

func (a amounts) list() corev1.ResourceList {
	out := make(corev1.ResourceList, len(a))
	for name, n := range a {
		switch name {
		case corev1.ResourceCPU:
			out[name] = *resource.NewMilliQuantity(n, resource.DecimalSI)
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			out[name] = *resource.NewQuantity(n, resource.BinarySI)
		default:
			out[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	return out
}

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
