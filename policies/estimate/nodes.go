package estimate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// podsPerNode is how many pods a node runs that is known by its size only: the
// kubelet's default.
const podsPerNode = 110

// nodes are so many equal nodes.
type nodes struct {
	count int64
	// free of each of them. Resources that are not listed are not known by node,
	// and only the sums of the cluster count.
	free amounts
}

// nodesOf returns the nodes that the cluster counted by the models, the smallest
// first. Each of them counts as the least that its size stands for. It returns
// nil, for "unknown", where nothing was counted, or sizes that there are not.
func nodesOf(models []clusterv1alpha1.ResourceModel, counted []clusterv1alpha1.AllocatableModeling) []nodes {
	if len(counted) == 0 {
		return nil
	}
	counted = slices.Clone(counted)
	slices.SortFunc(counted, func(a, b clusterv1alpha1.AllocatableModeling) int { return cmp.Compare(a.Grade, b.Grade) })
	out := make([]nodes, 0, len(counted))
	for _, c := range counted {
		if c.Count <= 0 {
			continue
		}
		m := slices.IndexFunc(models, func(m clusterv1alpha1.ResourceModel) bool { return m.Grade == c.Grade })
		if m < 0 {
			return nil
		}
		n := nodes{count: min(int64(c.Count), math.MaxInt32), free: amounts{corev1.ResourcePods: podsPerNode}}
		for _, r := range models[m].Ranges {
			n.free[r.Name] = amount(r.Name, &r.Min)
		}
		out = append(out, n)
	}
	return out
}

// fits returns how many such pods one of the nodes takes.
func (n *nodes) fits(each amounts) int64 {
	most := int64(podsPerNode)
	for name, want := range each {
		if have, known := n.free[name]; known {
			most = min(most, quotient(have, want))
		}
	}
	return most
}

// less returns one set of nodes of which each runs that many pods more.
func (n *nodes) less(count int64, each amounts, pods int64) nodes {
	out := nodes{count: count, free: maps.Clone(n.free)}
	for name, want := range each {
		if have, known := out.free[name]; known {
			out.free[name] = minus(have, times(want, pods))
		}
	}
	return out
}

// place puts n pods on the nodes, the first ones first, and returns what the
// nodes have left and how many pods found none.
func place(all []nodes, each amounts, n int64) (rest []nodes, left int64) {
	rest = make([]nodes, 0, len(all)+2)
	for i := range all {
		c := &all[i]
		most := c.fits(each)
		if n == 0 || most == 0 {
			rest = append(rest, *c)
			continue
		}
		take := min(n, most*c.count)
		n -= take
		full, part := take/most, take%most
		untouched := c.count - full
		if full > 0 {
			rest = append(rest, c.less(full, each, most))
		}
		if part > 0 {
			rest = append(rest, c.less(1, each, part))
			untouched--
		}
		if untouched > 0 {
			rest = append(rest, nodes{count: untouched, free: c.free})
		}
	}
	return rest, n
}
