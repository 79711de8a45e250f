package nodes

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Index is what single nodes of a cluster have free, kept by changes. The zero value
// has no nodes.
type Index struct {
	// columns are the resources that are counted, pods first.
	columns []corev1.ResourceName
	// rows are sorted by the name of the node.
	rows []row
	// free has of each row one number for each column.
	free []int64
	// taints are the distinct sets of them, so that a question looks at each once.
	taints  [][]corev1.Taint
	may     eligible
	waiting map[podKey]*Pod
	quotas  map[string]map[string]*Quota // by namespace and name
}

// row is a node, or the name of one of which only pods are known.
type row struct {
	name   string
	node   *Node // nil: not known
	taints int
}

// eligible remembers which rows may run what claims a node in some way: nodes change less
// often than pods. The zero value remembers nothing.
type eligible struct {
	mu   sync.Mutex
	rows map[string][]int32 // by the claim
}

// mostNodeClaims is how many claims are remembered.
const mostNodeClaims = 64

func (e *eligible) of(claim string) ([]int32, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rows, known := e.rows[claim]
	return rows, known
}

func (e *eligible) keep(claim string, rows []int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rows == nil || len(e.rows) >= mostNodeClaims {
		e.rows = map[string][]int32{}
	}
	e.rows[claim] = rows
}

// forget is for when the rows are others, or a node is of another kind.
func (e *eligible) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rows = nil
}

type podKey struct{ namespace, name string }

// Node has the index know a node as it is now: nil for one that is gone.
func (x *Index) Node(name string, is *Node) {
	if x.at(name) < 0 && is == nil {
		return
	}
	i := x.place(name)
	was := x.rows[i].node
	if was != nil {
		x.add(i, was.Allocatable, -1)
	}
	if was == nil || is == nil || !maps.Equal(was.Labels, is.Labels) || !slices.EqualFunc(was.Taints, is.Taints, sameTaint) {
		x.may.forget()
	}
	x.rows[i].node = is
	if is != nil {
		x.rows[i].taints = x.taintsOf(is)
		x.add(i, is.Allocatable, 1)
	}
	x.tidy(i)
}

// Pod has the index know a pod as it is now, given what it knew of it before: nil for
// one that it did not know, or that is gone.
func (x *Index) Pod(was, is *Pod) {
	if was != nil {
		delete(x.waiting, podKey{was.Namespace, was.Name})
	}
	if was == nil || is == nil || was.Node != is.Node || was.Over != is.Over || !slices.Equal(was.Requests, is.Requests) {
		x.occupy(was, 1)
		x.occupy(is, -1)
	}
	if is == nil {
		return
	}
	if !is.Waits.IsZero() && !is.Over && is.Node == "" {
		if x.waiting == nil {
			x.waiting = map[podKey]*Pod{}
		}
		x.waiting[podKey{is.Namespace, is.Name}] = is
	}
}

// Quota has the index know a quota as it is now: nil for one that is gone.
func (x *Index) Quota(namespace, name string, is *Quota) {
	if is == nil {
		if delete(x.quotas[namespace], name); len(x.quotas[namespace]) == 0 {
			delete(x.quotas, namespace)
		}
		return
	}
	if x.quotas == nil {
		x.quotas = map[string]map[string]*Quota{}
	}
	if x.quotas[namespace] == nil {
		x.quotas[namespace] = map[string]*Quota{}
	}
	x.quotas[namespace][name] = is
}

// Nodes goes through the nodes, by name, with what each of them has free, sorted by
// resource: nothing where more is taken than there is.
func (x *Index) Nodes() iter.Seq2[*Node, Amounts] {
	return func(yield func(*Node, Amounts) bool) {
		for i := range x.rows {
			if x.rows[i].node == nil {
				continue
			}
			free := make(Amounts, len(x.columns))
			for c, n := range x.of(x.free, i) {
				free[c] = AmountOf{x.columns[c], min(max(n, 0), Largest)}
			}
			slices.SortFunc(free, byResource)
			if !yield(x.rows[i].node, free) {
				return
			}
		}
	}
}

// Quotas goes through the quotas that count for pods, with their namespaces, in a stable
// order.
func (x *Index) Quotas() iter.Seq2[string, *Quota] {
	return func(yield func(string, *Quota) bool) {
		for _, namespace := range slices.Sorted(maps.Keys(x.quotas)) {
			for _, name := range slices.Sorted(maps.Keys(x.quotas[namespace])) {
				q := x.quotas[namespace][name]
				if !q.Foreign && len(q.Free) > 0 && !yield(namespace, q) {
					return
				}
			}
		}
	}
}

// occupy takes what a pod needs off its node, or gives it back. No pod needs nothing.
func (x *Index) occupy(p *Pod, sign int64) {
	if p == nil || p.Node == "" || p.Over {
		return
	}
	i := x.place(p.Node)
	x.add(i, p.Requests, sign)
	x.add(i, onePod, sign)
	x.tidy(i)
}

var onePod = Amounts{{corev1.ResourcePods, 1}}

// add adds so many times the amounts to what is free in a row. Numbers that no cluster
// has wrap around, and are right again once they are gone.
func (x *Index) add(i int, amounts Amounts, sign int64) {
	for _, a := range amounts {
		c := x.column(a.Name)
		x.free[i*len(x.columns)+c] += sign * a.N
	}
}

// of returns the numbers of a row.
func (x *Index) of(free []int64, i int) []int64 {
	w := len(x.columns)
	return free[i*w : (i+1)*w]
}

// at returns the row of the name; negative if there is none.
func (x *Index) at(name string) int {
	if i, ok := slices.BinarySearchFunc(x.rows, name, rowCompare); ok {
		return i
	}
	return -1
}

func rowCompare(r row, name string) int { return cmp.Compare(r.name, name) }

// place returns the row of the name, and makes it where there is none.
func (x *Index) place(name string) int {
	if len(x.columns) == 0 {
		x.columns = []corev1.ResourceName{corev1.ResourcePods}
	}
	i, ok := slices.BinarySearchFunc(x.rows, name, rowCompare)
	if !ok {
		x.may.forget()
		w := len(x.columns)
		x.rows = slices.Insert(x.rows, i, row{name: name})
		x.free = slices.Insert(x.free, i*w, make([]int64, w)...)
	}
	return i
}

// tidy drops a row if nothing is known of it any more.
func (x *Index) tidy(i int) {
	w := len(x.columns)
	if x.rows[i].node != nil || slices.ContainsFunc(x.of(x.free, i), func(n int64) bool { return n != 0 }) {
		return
	}
	x.may.forget()
	x.rows = slices.Delete(x.rows, i, i+1)
	x.free = slices.Delete(x.free, i*w, (i+1)*w)
}

// column returns the column of a resource, and makes it where there is none.
func (x *Index) column(name corev1.ResourceName) int {
	if c := slices.Index(x.columns, name); c >= 0 {
		return c
	}
	was := len(x.columns)
	wider := make([]int64, 0, len(x.rows)*(was+1))
	for i := range x.rows {
		wider = append(append(wider, x.of(x.free, i)...), 0)
	}
	x.columns, x.free = append(x.columns, name), wider
	return was
}

// taintsOf returns which of the distinct sets of taints the node has.
func (x *Index) taintsOf(n *Node) int {
	i := slices.IndexFunc(x.taints, func(t []corev1.Taint) bool { return slices.EqualFunc(t, n.Taints, sameTaint) })
	if i >= 0 {
		return i
	}
	if len(x.taints) > 2*len(x.rows) { // most of them are of the past
		x.taints = nil
		for r := range x.rows {
			if other := x.rows[r].node; other != nil && other != n {
				x.rows[r].taints = x.taintsOf(other)
			}
		}
	}
	x.taints = append(x.taints, n.Taints)
	return len(x.taints) - 1
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// since reports whether at is that long before now, or longer.
func since(at, now time.Time, threshold time.Duration) bool { return !at.Add(threshold).After(now) }
