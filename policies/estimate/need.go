package estimate

import (
	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Need is what one unit of a workload asks for, made ready to be compared with
// many clusters: one replica, or one set of all components. The zero value asks
// for nothing, and fits everywhere.
type Need struct {
	parts []part
	unit  amounts // of all parts together, pods included
}

// part is so many equal pods.
type part struct {
	pods int64
	each amounts // of one pod, itself included
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
	n := Need{unit: amounts{}}
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
		for name, want := range p.each {
			n.unit[name] = plus(n.unit[name], times(want, p.pods))
		}
		n.parts = append(n.parts, p)
	}
	return n
}

// podOf returns what a pod takes. Requests of nothing, or less, are left out.
func podOf(list corev1.ResourceList) amounts {
	out := make(amounts, len(list)+1)
	for name, q := range list {
		if want := amount(name, &q); want > 0 {
			out[name] = want
		}
	}
	out[corev1.ResourcePods] = max(out[corev1.ResourcePods], 1)
	return out
}

// onNodes returns how many units fit on the nodes, and not more than most.
func (n Need) onNodes(all []nodes, most int64) int64 {
	switch len(n.parts) {
	case 0:
		return most
	case 1:
		var sum int64
		for _, c := range all {
			sum = plus(sum, times(c.fits(n.parts[0].each), c.count))
		}
		return min(most, sum/n.parts[0].pods)
	}
	if !n.place(all, 1) {
		return 0
	}
	least := int64(1) // fits; most+1 counts as too many
	for step := int64(1); least < most; step *= 2 {
		next := min(least+step, most)
		if !n.place(all, next) {
			return n.between(all, least, next)
		}
		least = next
	}
	return least
}

// between returns how many units fit, knowing that least do and most do not.
func (n Need) between(all []nodes, least, most int64) int64 {
	for most-least > 1 {
		middle := least + (most-least)/2
		if n.place(all, middle) {
			least = middle
		} else {
			most = middle
		}
	}
	return least
}

// place says whether so many units find nodes.
func (n Need) place(all []nodes, units int64) bool {
	for _, p := range n.parts {
		rest, left := place(all, p.each, times(p.pods, units))
		if left > 0 {
			return false
		}
		all = rest
	}
	return true
}

// average returns what one replica of l takes, and how many there are.
func (l *Load) average() (each amounts, n int64) {
	q := l.Resources[corev1.ResourcePods]
	if n = amount(corev1.ResourcePods, &q); n <= 0 {
		return nil, 0
	}
	each = make(amounts, len(l.Resources))
	for name, q := range l.Resources {
		if sum := amount(name, &q); sum > 0 {
			each[name] = sum/n + min(sum%n, 1)
		}
	}
	return each, n
}
