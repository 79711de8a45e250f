package profile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// mostValues is how many values a label has that says something about a node: one that has
// more distinguishes nodes.
const mostValues = 64

// survey is all that there is to report, unrounded.
type survey struct {
	resources []corev1.ResourceName
	nodes     []node
	quotas    []quota
	// apart are the keys of labels that distinguish nodes, keys the others: those with
	// the most values first.
	apart, keys []string
	leftOut     int64
}

type node struct {
	*nodes.Node
	free []int64 // of resources
}

type quota struct {
	namespace string
	*nodes.Quota
}

// surveyOf looks at all nodes that can take a pod. Resources of which none has any, and
// what is too much to be reported, is left out.
func surveyOf(x *nodes.Index) *survey {
	out := &survey{}
	seen := map[corev1.ResourceName]bool{corev1.ResourcePods: true}
	for n, free := range x.Nodes() {
		if amountOf(free, corev1.ResourcePods) == 0 {
			continue
		}
		out.nodes = append(out.nodes, node{Node: n})
		for _, a := range free {
			seen[a.Name] = seen[a.Name] || a.N > 0
		}
	}
	maps.DeleteFunc(seen, func(_ corev1.ResourceName, some bool) bool { return !some })
	out.resources = slices.SortedFunc(maps.Keys(seen), byWeight)
	out.resources = out.resources[:min(len(out.resources), mostResources)]
	most := min(mostNodes, mostNumbers/len(out.resources))
	if over := len(out.nodes) - most; over > 0 {
		out.nodes, out.leftOut = out.nodes[:most], int64(over)
	}
	at := 0
	for _, free := range x.Nodes() {
		if at == len(out.nodes) {
			break
		}
		if amountOf(free, corev1.ResourcePods) == 0 {
			continue
		}
		for _, name := range out.resources {
			out.nodes[at].free = append(out.nodes[at].free, amountOf(free, name))
		}
		at++
	}
	for namespace, q := range x.Quotas() {
		out.quotas = append(out.quotas, quota{namespace, q})
	}
	out.sortKeys()
	return out
}

func amountOf(list nodes.Amounts, name corev1.ResourceName) int64 {
	for _, a := range list {
		if a.Name == name {
			return a.N
		}
	}
	return 0
}

// byWeight sorts resources so that nodes which are near each other have about the same free.
func byWeight(a, b corev1.ResourceName) int {
	weight := func(name corev1.ResourceName) int {
		return slices.Index([]corev1.ResourceName{corev1.ResourcePods, corev1.ResourceMemory, corev1.ResourceCPU}, name)
	}
	return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
}

// sortKeys finds which labels say something about a node.
func (s *survey) sortKeys() {
	values := map[string]map[string]bool{}
	for i := range s.nodes {
		for key, value := range s.nodes[i].Labels {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
			values[key][value] = true
		}
	}
	for key, of := range values {
		if key == corev1.LabelHostname || len(of) > mostValues {
			s.apart = append(s.apart, key)
		} else {
			s.keys = append(s.keys, key)
		}
	}
	slices.Sort(s.apart)
	slices.SortFunc(s.keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(values[b]), len(values[a])), cmp.Compare(a, b))
	})
}

// group is the nodes of a kind.
type group struct {
	Kind
	nodes []*node
}

// groups returns the nodes by their kinds, without the labels of so many keys, from the
// first: the kinds with the most nodes first.
func (s *survey) groups(keys int) []group {
	omitted := map[string]bool{}
	for _, key := range slices.Concat(s.apart, s.keys[:keys]) {
		omitted[key] = true
	}
	known := map[string]*group{}
	for i := range s.nodes {
		n := &s.nodes[i]
		k := kindOf(n.Node, omitted)
		key := k.key()
		if known[key] == nil {
			known[key] = &group{Kind: k}
		}
		known[key].nodes = append(known[key].nodes, n)
	}
	keysOf := slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(known[b].nodes), len(known[a].nodes)), cmp.Compare(a, b))
	})
	out := make([]group, len(known))
	for i, key := range keysOf {
		out[i] = *known[key]
	}
	return out
}

func kindOf(n *nodes.Node, omitted map[string]bool) Kind {
	labels := maps.Clone(n.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return omitted[key] })
	taints := slices.SortedFunc(slices.Values(n.Taints), func(a, b corev1.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return Kind{Labels: labels, Taints: taints}
}

// textOf returns a text that equal values share.
func textOf(v any) string {
	out, err := json.Marshal(v)
	if err != nil { // plain values always encode
		panic(err)
	}
	return string(out)
}

// rows returns the nodes as rows, rounded down to so many parts, and joined to so many rows
// at most; zero: to any number.
func (s *survey) rows(of []*node, parts int64, most int) [][]int64 {
	all := make([][]int64, 0, len(of))
	for _, n := range of {
		row := make([]int64, 1, len(n.free)+1)
		row[0] = 1
		for i, free := range n.free {
			row = append(row, down(s.resources[i], free, parts))
		}
		all = append(all, row)
	}
	slices.SortFunc(all, byFree)
	out := all[:0]
	for _, row := range all {
		if last := len(out) - 1; last >= 0 && byFree(out[last], row) == 0 {
			out[last][0]++
			continue
		}
		out = append(out, row)
	}
	return joined(out, most)
}

func byFree(a, b []int64) int { return slices.Compare(a[1:], b[1:]) }

// joined returns at most so many rows: neighbours are joined, with the least that one of them
// has. The rows are sorted.
func joined(rows [][]int64, most int) [][]int64 {
	if most == 0 || len(rows) <= most {
		return rows
	}
	out := make([][]int64, 0, most)
	for chunk := range slices.Chunk(rows, (len(rows)+most-1)/most) {
		one := chunk[0]
		for _, row := range chunk[1:] {
			one[0] += row[0]
			for i := 1; i < len(one); i++ {
				one[i] = min(one[i], row[i])
			}
		}
		out = append(out, one)
	}
	return out
}
