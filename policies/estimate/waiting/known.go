package waiting

import (
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// ErrUnreported says that a cluster reports some workloads only, and not of this one.
var ErrUnreported = errors.New("more waits in the cluster than it tells of")

// Known is a List as it counts for those who read it. It does not change. Nil: there is none.
type Known struct {
	workloads map[key][]row
	some      bool // more waits than is reported
}

// row is replicas that wait.
type row struct {
	since int64     // since when
	from  time.Time // since when that counts
	n     int64
	new   bool // it was not reported before
}

// Read returns what counts of the list, which is read now; was is what was known before. Since
// when something waits is reported by the clock of its cluster: a time that is still to come counts
// from when it was read first.
func Read(l *List, was *Known, now time.Time) *Known {
	out := &Known{workloads: make(map[key][]row, len(l.Workloads)), some: l.LeftOut > 0}
	ahead := now.Add(grain * time.Second)
	for i := range l.Workloads {
		w := &l.Workloads[i]
		rows := make([]row, len(w.Rows))
		for i, is := range w.Rows {
			rows[i] = row{since: is[0], from: time.Unix(is[0], 0), n: is[1]}
			before := was.row(w.key(), is[0])
			rows[i].new = before == nil || before.n < is[1]
			switch {
			case before != nil:
				rows[i].from = before.from
			case rows[i].from.After(ahead):
				rows[i].from = now
			}
		}
		out.workloads[w.key()] = rows
	}
	return out
}

func (k *Known) row(of key, reported int64) *row {
	if k == nil {
		return nil
	}
	rows := k.workloads[of]
	if i := slices.IndexFunc(rows, func(r row) bool { return r.since == reported }); i >= 0 {
		return &rows[i]
	}
	return nil
}

// New goes through what waits that was not reported before: of which workload, by kind and
// name alone, and since when that counts. A workload may come several times.
func (k *Known) New() iter.Seq2[workv1alpha2.ObjectReference, time.Time] {
	return func(yield func(workv1alpha2.ObjectReference, time.Time) bool) {
		for of, rows := range k.workloads {
			is := workv1alpha2.ObjectReference{Kind: of.kind.Kind, Namespace: of.namespace, Name: of.name}
			for _, r := range rows {
				if r.new && !yield(is, r.from) {
					return
				}
			}
		}
	}
}

// Unschedulable returns how many replicas of the workload wait since so long, or longer. It errs
// with ErrUnreported.
func (k *Known) Unschedulable(of workv1alpha2.ObjectReference, threshold time.Duration, now time.Time) (int32, error) {
	rows, reported := k.workloads[keyOf(&of)]
	if !reported && k.some {
		return 0, ErrUnreported
	}
	var n int64
	for _, r := range rows {
		if !r.from.Add(threshold).After(now) {
			n += r.n
		}
	}
	return int32(min(n, math.MaxInt32)), nil
}
