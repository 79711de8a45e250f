package estimate

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Capacity is what a cluster has free, made ready to be asked often. It never
// changes. The zero value has nothing free.
type Capacity struct {
	// free is what is allocatable, less what pods hold and wait for.
	free amounts
	// nodes are what single nodes have free, where that is known.
	nodes nodes
}

// NewCapacity returns what c reports to be free. A cluster that reports no summary
// has nothing free.
func NewCapacity(c *clusterv1alpha1.Cluster) Capacity {
	summary := c.Status.ResourceSummary
	if summary == nil {
		return Capacity{}
	}
	r := Capacity{free: make(amounts, 0, len(summary.Allocatable))}
	for name, q := range summary.Allocatable {
		have := q.DeepCopy() // a large one is held by reference
		have.Sub(summary.Allocated[name])
		have.Sub(summary.Allocating[name])
		r.free = append(r.free, amountOf{name, Amount(name, &have)})
	}
	r.nodes = nodesOf(c.Spec.ResourceModels, summary.AllocatableModelings)
	return r
}

// WithoutNodes returns the capacity without what is known about single nodes.
func (r Capacity) WithoutNodes() Capacity { return Capacity{free: r.free} }

// Less returns the capacity that is left when l is taken from it; r stays as it is.
// Of single nodes it takes as if all replicas of the load were equal, from the
// smallest nodes first.
func (r Capacity) Less(l *Load) Capacity {
	if l == nil || len(l.Resources) == 0 {
		return r
	}
	out := Capacity{free: slices.Clone(r.free), nodes: r.nodes}
	for name, q := range l.Resources {
		free := out.free.at(name)
		*free = minus(*free, max(Amount(name, &q), 0))
	}
	if each, n := l.average(); n > 0 && r.nodes.known() {
		out.nodes.rows, _ = r.nodes.place(nil, r.nodes.want(nil, each), n)
	}
	return out
}

// Fits returns how many units of what is needed fit, at most MaxInt32.
func (r Capacity) Fits(n Need) int32 {
	most := int64(math.MaxInt32)
	for i := range n.unit {
		most = min(most, quotient(r.free.of(n.unit[i].name), n.unit[i].n))
	}
	if most > 0 && r.nodes.known() {
		most = n.onNodes(r.nodes, most)
	}
	return int32(max(most, 0))
}

// Amount returns q in the unit in which the resource is counted: thousandths of
// cores of CPU, bytes and pieces of all else; at most what an int64 holds.
func Amount(name corev1.ResourceName, q *resource.Quantity) int64 {
	factor := int64(1)
	if name == corev1.ResourceCPU {
		factor = 1000
	}
	switch limit := math.MaxInt64 / factor; {
	case q.CmpInt64(limit) >= 0:
		return math.MaxInt64
	case q.CmpInt64(-limit) <= 0:
		return math.MinInt64
	case factor == 1000:
		return q.MilliValue()
	default:
		return q.Value()
	}
}

// quotient returns how often want fits into have.
func quotient(have, want int64) int64 {
	switch {
	case want <= 0:
		return math.MaxInt64
	case have <= 0:
		return 0
	default:
		return have / want
	}
}

// minus returns a-b, or the least or largest number where that is beyond them.
func minus(a, b int64) int64 {
	d := a - b
	switch {
	case b > 0 && d > a:
		return math.MinInt64
	case b < 0 && d < a:
		return math.MaxInt64
	default:
		return d
	}
}

// Times returns a*b of numbers that are not negative, or the largest number.
func Times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// Plus returns a+b of numbers that are not negative, or the largest number.
func Plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
