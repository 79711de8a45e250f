package estimate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Need is what one unit of a workload asks for, made ready to be compared with
// many clusters one after another: one replica, or one set of all components.
// It is not for several goroutines at once. The zero value asks for nothing, and
// fits everywhere.
type Need struct {
	parts   []part
	unit    amounts // of all parts together, pods included
	scratch *simulation
}

// part is so many equal pods.
type part struct {
	pods int64
	each amounts // of one pod, itself included
}

// amounts of resources, each of which is listed once: thousandths of cores of
// CPU, bytes and pieces of all else. They are at most what an int64 holds,
// however large the quantity.
type amounts []amountOf

type amountOf struct {
	name corev1.ResourceName
	n    int64
}

// of returns the amount of the resource; zero where it is not listed.
func (a amounts) of(name corev1.ResourceName) int64 {
	for i := range a {
		if a[i].name == name {
			return a[i].n
		}
	}
	return 0
}

// at returns the amount of the resource to change it, and lists it first where
// it is not listed.
func (a *amounts) at(name corev1.ResourceName) *int64 {
	i := slices.IndexFunc(*a, func(x amountOf) bool { return x.name == name })
	if i < 0 {
		i = len(*a)
		*a = append(*a, amountOf{name: name})
	}
	return &(*a)[i].n
}

// NeedOf returns what one replica asks for. Without requirements that is a pod.
func NeedOf(req *workv1alpha2.ReplicaRequirements) Need {
	var list corev1.ResourceList
	if req != nil {
		list = req.ResourceRequest
	}
	each := podOf(list)
	return Need{parts: []part{{pods: 1, each: each}}, unit: each}
}

// NeedOfSet returns what one replica of a workload with several components asks
// for: as many pods of each as the component has replicas.
func NeedOfSet(components []workv1alpha2.Component) Need {
	var n Need
	for i := range components {
		c := &components[i]
		if c.Replicas <= 0 {
			continue
		}
		var list corev1.ResourceList
		if c.ReplicaRequirements != nil {
			list = c.ReplicaRequirements.ResourceRequest
		}
		p := part{pods: int64(c.Replicas), each: podOf(list)}
		for _, want := range p.each {
			sum := n.unit.at(want.name)
			*sum = Plus(*sum, Times(want.n, p.pods))
		}
		n.parts = append(n.parts, p)
	}
	n.scratch = &simulation{parts: n.parts}
	return n
}

// podOf returns what a pod takes. Requests of nothing, or less, are left out.
func podOf(list corev1.ResourceList) amounts {
	out := make(amounts, 0, len(list)+1)
	for name, q := range list {
		if want := Amount(name, &q); want > 0 {
			out = append(out, amountOf{name, want})
		}
	}
	pods := out.at(corev1.ResourcePods)
	*pods = max(*pods, 1)
	return out
}

// onNodes returns how many units fit on the nodes, and not more than limit.
func (n Need) onNodes(all nodes, limit int64) int64 {
	switch len(n.parts) {
	case 0:
		return limit
	case 1:
		var buffer [8]int64
		return min(limit, all.capacity(all.want(buffer[:0], n.parts[0].each))/n.parts[0].pods)
	default:
		s := n.scratch
		s.nodes, s.wants = all, s.wants[:0]
		for i := range n.parts {
			s.wants = all.want(s.wants, n.parts[i].each)
		}
		return s.most(limit)
	}
}

// average returns what one replica of l takes, and how many there are.
func (l *Load) average() (each amounts, n int64) {
	q := l.Resources[corev1.ResourcePods]
	if n = Amount(corev1.ResourcePods, &q); n <= 0 {
		return nil, 0
	}
	for name, q := range l.Resources {
		if sum := Amount(name, &q); sum > 0 {
			each = append(each, amountOf{name, sum/n + min(sum%n, 1)})
		}
	}
	return each, n
}
