package nodes

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/estimate"
)

// Plugin bounds how many units of a workload a cluster takes.
type Plugin interface {
	// Name is what the plugin is called where it is switched.
	Name() string
	// Most returns how many units fit at most; MaxInt64 where it knows no bound.
	Most(x *Index, ask *Ask) int64
}

// NodeLimit bounds how many pods of a part one node takes, whatever it has free;
// MaxInt64 where it knows no bound.
type NodeLimit func(n *Node, p *Part) int64

// Resources counts by what single nodes have free, and by which nodes may run it. The
// zero value is ready.
type Resources struct {
	// Limits bound nodes besides.
	Limits []NodeLimit
}

// Name implements Plugin.
func (Resources) Name() string { return "NodeResources" }

// Most implements Plugin. What is assumed to run takes the first nodes that have room
// for it; so do the parts of a set, one after the other.
func (r Resources) Most(x *Index, ask *Ask) int64 {
	if len(ask.Parts) == 0 {
		return math.MaxInt64
	}
	free := x.free
	if len(ask.Assumed) > 0 {
		free = slices.Clone(free)
		for i := range ask.Assumed {
			p := r.compile(x, &ask.Assumed[i].Part)
			p.put(x, free, ask.Assumed[i].Pods)
		}
	}
	fits := make([]fitting, len(ask.Parts))
	most := int64(math.MaxInt64)
	for i := range ask.Parts {
		fits[i] = r.compile(x, &ask.Parts[i])
		most = min(most, fits[i].capacity(x, free)/ask.Parts[i].Pods)
	}
	if len(fits) == 1 || most == 0 {
		return most
	}
	s := simulation{index: x, free: free, fits: fits}
	return s.most(most)
}

// fitting is a part made ready to be held against the nodes of one index.
type fitting struct {
	*Part
	columns []int   // of what it asks for, pods included
	want    []int64 // of each of those
	nodes   []int32 // the rows that may run it
	limits  []NodeLimit
}

func (r Resources) compile(x *Index, p *Part) fitting {
	out := fitting{Part: p, columns: []int{0}, want: []int64{1}, limits: r.Limits}
	for _, a := range p.Requests {
		c := slices.Index(x.columns, a.Name)
		switch {
		case a.N <= 0:
		case c < 0:
			return out // no node and no pod is about it
		case c == 0:
			out.want[0] = max(a.N, 1)
		default:
			out.columns, out.want = append(out.columns, c), append(out.want, a.N)
		}
	}
	out.nodes = x.eligible(p)
	return out
}

// eligible returns the rows of the nodes that may run the part's pods. It is shared: not to
// be changed.
func (x *Index) eligible(p *Part) []int32 {
	if rows, known := x.may.of(p.nodeClaimKey); known {
		return rows
	}
	tolerated := make([]bool, len(x.taints))
	for i := range x.taints {
		tolerated[i] = p.tolerates(x.taints[i])
	}
	out := make([]int32, 0, len(x.rows))
	scratch := &corev1.Node{}
	for i := range x.rows {
		if row := &x.rows[i]; row.node != nil && tolerated[row.taints] && p.means(row.node, scratch) {
			out = append(out, int32(i))
		}
	}
	x.may.keep(p.nodeClaimKey, out)
	return out
}

// on returns how many of its pods a node takes.
func (f *fitting) on(x *Index, row int32, free []int64) int64 {
	most := int64(math.MaxInt64)
	for i, c := range f.columns {
		switch have, want := free[c], f.want[i]; {
		case have < want:
			return 0
		case want == 1:
			most = min(most, have)
		case most > 1<<12 || most*want > have: // which spares most divisions; want is 2^50 at most
			most = min(most, have/want)
		}
	}
	for _, limit := range f.limits {
		most = min(most, limit(x.rows[row].node, f.Part))
	}
	return max(most, 0)
}

// capacity returns how many of its pods all nodes take.
func (f *fitting) capacity(x *Index, free []int64) int64 {
	var sum int64
	for _, row := range f.nodes {
		sum = estimate.Plus(sum, f.on(x, row, x.of(free, int(row))))
	}
	return sum
}

// put puts so many pods on the first nodes that take them, and returns how many found none.
func (f *fitting) put(x *Index, free []int64, pods int64) int64 {
	for _, row := range f.nodes {
		if pods == 0 {
			break
		}
		have := x.of(free, int(row))
		take := min(f.on(x, row, have), pods)
		for i, c := range f.columns {
			have[c] -= take * f.want[i]
		}
		pods -= take
	}
	return pods
}

// simulation tries how many sets of parts find nodes.
type simulation struct {
	index   *Index
	free    []int64
	fits    []fitting
	scratch []int64
}

// fit reports whether so many sets find nodes, part after part.
func (s *simulation) fit(sets int64) bool {
	s.scratch = append(s.scratch[:0], s.free...)
	for i := range s.fits {
		if s.fits[i].put(s.index, s.scratch, estimate.Times(s.fits[i].Pods, sets)) > 0 {
			return false
		}
	}
	return true
}

// most returns how many sets find nodes, and not more than limit, which is at least one.
func (s *simulation) most(limit int64) int64 {
	if s.fit(limit) {
		return limit
	}
	good, bad := int64(0), limit
	for bad-good > 1 {
		if middle := good + (bad-good)/2; s.fit(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}
