package waiting

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// List is what waits for a node in a cluster. The zero value is no valid one; see Of.
type List struct {
	// Version is that of the format; see Version.
	Version int `json:"version"`
	// Workloads are those that wait, the longest first.
	Workloads []Workload `json:"workloads,omitempty"`
	// LeftOut is how many workloads are left out, although they wait.
	LeftOut int64 `json:"leftOut,omitempty"`
}

// Workload is what waits of one.
type Workload struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Rows are since when, in seconds since 1970, and how many replicas wait since then,
	// or longer than that; the longest first.
	Rows [][]int64 `json:"rows"`
}

// Version is that of the format.
const Version = 1

// grain is the resolution of the time since when something waits: replicas come several at once.
const grain = 10

// mostRows is how many rows a workload has at most.
const mostRows = 8

// Of returns what waits of the workloads: as many of them as MostBytes have room for, and of
// each in as many rows.
func Of(all []nodes.Waiting, workloads iter.Seq[workv1alpha2.ObjectReference]) *List {
	return within(all, workloads, MostBytes)
}

func within(all []nodes.Waiting, workloads iter.Seq[workv1alpha2.ObjectReference], most int) *List {
	reported := reportedOf(all, workloads)
	for rows := mostRows; ; rows /= 2 {
		out := &List{Version: Version}
		size := len((&List{Version: Version, LeftOut: int64(len(reported)) + 1}).Encode()) + len(`"workloads":[],`)
		for _, w := range reported {
			w.Rows = joined(w.Rows, rows)
			if size += len(textOf(w)) + len(","); size > most || len(out.Workloads) == mostWorkloads {
				break
			}
			out.Workloads = append(out.Workloads, w)
		}
		out.LeftOut = int64(len(reported) - len(out.Workloads))
		if out.LeftOut == 0 || rows == 1 {
			return out
		}
	}
}

// name is where a controller is found by the name of a workload.
type name struct{ namespace, name string }

// reportedOf returns the workloads of which something waits, the longest first.
func reportedOf(all []nodes.Waiting, workloads iter.Seq[workv1alpha2.ObjectReference]) []Workload {
	if len(all) == 0 {
		return nil
	}
	by := map[name][]nodes.Waiting{}
	for _, w := range all {
		by[name{w.Namespace, w.Owner.Name}] = append(by[name{w.Namespace, w.Owner.Name}], w)
		if of := w.Workload(); of != "" && of != w.Owner.Name {
			by[name{w.Namespace, of}] = append(by[name{w.Namespace, of}], w)
		}
	}
	known := map[key]bool{}
	var out []Workload
	for of := range workloads {
		own := slices.DeleteFunc(slices.Clone(by[name{of.Namespace, of.Name}]), func(w nodes.Waiting) bool { return !w.Of(&of) })
		if latest, k := nodes.Latest(own), keyOf(&of); latest != nil && !known[k] {
			known[k] = true
			out = append(out, Workload{k.kind.Group, k.kind.Kind, k.namespace, k.name, rowsOf(latest.Since)})
		}
	}
	slices.SortFunc(out, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Rows[0][0], b.Rows[0][0]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	return out
}

// rowsOf rounds times up.
func rowsOf(since []time.Time) [][]int64 {
	var out [][]int64
	for _, at := range since {
		seconds := max(at.Add(grain*time.Second-1).Unix(), 0) / grain * grain
		if last := len(out) - 1; last >= 0 && out[last][0] == seconds {
			out[last][1]++
			continue
		}
		out = append(out, []int64{seconds, 1})
	}
	return out
}

// joined returns at most so many rows: neighbours are joined, since the latest time.
func joined(rows [][]int64, most int) [][]int64 {
	if len(rows) <= most {
		return rows
	}
	out := make([][]int64, 0, most)
	for chunk := range slices.Chunk(rows, (len(rows)+most-1)/most) {
		one := []int64{chunk[len(chunk)-1][0], 0}
		for _, row := range chunk {
			one[1] += row[1]
		}
		out = append(out, one)
	}
	return out
}

// key is a workload, whatever the version of its API.
type key struct {
	kind            schema.GroupKind
	namespace, name string
}

func keyOf(of *workv1alpha2.ObjectReference) key {
	return key{schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind(), of.Namespace, of.Name}
}

func (w *Workload) key() key {
	return key{schema.GroupKind{Group: w.Group, Kind: w.Kind}, w.Namespace, w.Name}
}
