package estimate

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// podsPerNode is how many pods a node runs that is known by its size only: the
// kubelet's default.
const podsPerNode = 110

// nodes are the nodes of a cluster by what they have free at least, the smallest
// first. They never change. The zero value knows of none, and says so.
type nodes struct {
	// names of the resources that are known by node, pods first.
	names []corev1.ResourceName
	// rows of as many numbers as there are names and one more: how many nodes
	// there are, and what each of them has free.
	rows []int64
}

func (n nodes) known() bool { return len(n.names) > 0 }

func (n nodes) width() int { return len(n.names) + 1 }

// nodesOf returns the nodes that the cluster counted by the models. Each of them
// counts as the least that its size stands for. They are not known where nothing
// was counted, or sizes that there are not.
func nodesOf(models []clusterv1alpha1.ResourceModel, counted []clusterv1alpha1.AllocatableModeling) nodes {
	if len(counted) == 0 || len(models) == 0 {
		return nodes{}
	}
	counted = slices.Clone(counted)
	slices.SortFunc(counted, func(a, b clusterv1alpha1.AllocatableModeling) int { return cmp.Compare(a.Grade, b.Grade) })
	out := nodes{names: []corev1.ResourceName{corev1.ResourcePods}}
	for i := range models[0].Ranges { // all sizes are about the same resources
		if name := models[0].Ranges[i].Name; !slices.Contains(out.names, name) {
			out.names = append(out.names, name)
		}
	}
	out.rows = make([]int64, 0, len(counted)*out.width())
	for _, c := range counted {
		if c.Count <= 0 {
			continue
		}
		m := slices.IndexFunc(models, func(m clusterv1alpha1.ResourceModel) bool { return m.Grade == c.Grade })
		if m < 0 {
			return nodes{}
		}
		out.rows = append(out.rows, min(int64(c.Count), math.MaxInt32), podsPerNode)
		for _, name := range out.names[1:] {
			out.rows = append(out.rows, least(models[m].Ranges, name))
		}
	}
	return out
}

func least(ranges []clusterv1alpha1.ResourceModelRange, name corev1.ResourceName) int64 {
	for i := range ranges {
		if ranges[i].Name == name {
			return Amount(name, &ranges[i].Min)
		}
	}
	return 0
}

// want appends what a pod takes to dst, in the order of names. Resources that
// are not known by node are left out.
func (n nodes) want(dst []int64, each amounts) []int64 {
	for _, name := range n.names {
		dst = append(dst, each.of(name))
	}
	return dst
}

// fits returns how many such pods a node with so much free takes.
func fits(free, want []int64) int64 {
	most := int64(podsPerNode)
	for i, w := range want {
		if w > 0 {
			most = min(most, quotient(free[i], w))
		}
	}
	return most
}

// capacity returns how many such pods all nodes take.
func (n nodes) capacity(want []int64) int64 {
	var sum int64
	for r := 0; r < len(n.rows); r += n.width() {
		sum = Plus(sum, n.rows[r]*fits(n.rows[r+1:r+n.width()], want)) // at most 2^31*110
	}
	return sum
}

// place puts count pods on the nodes, the first ones first. It appends the nodes
// with what they have left to dst, and returns how many pods found none.
func (n nodes) place(dst []int64, want []int64, count int64) (rows []int64, left int64) {
	for r := 0; r < len(n.rows); r += n.width() {
		there, free := n.rows[r], n.rows[r+1:r+n.width()]
		most := fits(free, want)
		if count == 0 || most == 0 {
			dst = append(dst, n.rows[r:r+n.width()]...)
			continue
		}
		take := min(count, most*there)
		count -= take
		full, part := take/most, take%most
		dst = appendNodes(dst, full, free, want, most)
		if part > 0 {
			dst = appendNodes(dst, 1, free, want, part)
			there--
		}
		dst = appendNodes(dst, there-full, free, want, 0)
	}
	return dst, count
}

// appendNodes appends so many nodes of which each runs that many pods more.
func appendNodes(dst []int64, there int64, free, want []int64, pods int64) []int64 {
	if there <= 0 {
		return dst
	}
	dst = append(dst, there)
	for i := range free {
		dst = append(dst, minus(free[i], Times(want[i], pods)))
	}
	return dst
}

// simulation tries how many units of a need find nodes. Its buffers are used
// again for each try.
type simulation struct {
	nodes   nodes
	parts   []part
	wants   []int64 // of one part after another
	buffers [2][]int64
}

// fit reports whether so many units find nodes, part after part.
func (s *simulation) fit(units int64) bool {
	current, n := s.nodes, len(s.nodes.names)
	for i, p := range s.parts {
		var left int64
		if current.rows, left = current.place(s.buffers[i%2][:0], s.wants[i*n:(i+1)*n], Times(p.pods, units)); left > 0 {
			return false
		}
		s.buffers[i%2] = current.rows
	}
	return true
}

// most returns how many units find nodes, and not more than limit, which is at
// least one.
func (s *simulation) most(limit int64) int64 {
	if !s.fit(1) {
		return 0
	}
	good, bad := int64(1), limit+1
	for step := int64(1); good+step < bad; step *= 2 {
		if !s.fit(good + step) {
			bad = good + step
			break
		}
		good += step
	}
	for bad-good > 1 {
		if middle := good + (bad-good)/2; s.fit(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}
