package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// lastMove describes the move that d is.
func lastMove(p *placing, d *Decision) *eviction.Move {
	last, before := p.record.LastMove, p.spec.Clusters
	if len(before) == 0 { // it was taken off them first
		for i := range p.spec.GracefulEvictionTasks {
			before = append(before, workv1alpha2.TargetCluster{Name: p.spec.GracefulEvictionTasks[i].FromCluster})
		}
	}
	if move := eviction.MoveOf(before, d.Clusters, because(p, d), p.in.Now); move != nil {
		last = move
	}
	return last.Until(d.Evictions, p.in.Now)
}

// because is why clusters are left: what bars them, or the cause of the eviction, otherwise why a new decision was due.
func because(p *placing, d *Decision) string {
	var out []string
	add := func(why string) {
		if why != "" && !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	for _, name := range d.Evicts {
		add(p.barred[name].Why)
	}
	if tasks := p.spec.GracefulEvictionTasks; len(p.spec.Clusters) == 0 {
		for i := range tasks {
			add(cmp.Or(tasks[i].Message, tasks[i].Reason))
		}
	}
	return cmp.Or(strings.Join(out, ", "), d.Why)
}

// EndMove records on b that its last move is over, if b has no eviction tasks of it any more, and which Works go with that.
func EndMove(b workv1alpha2.Binding, beside []types.UID, now time.Time) {
	record, recorded := RecordOf(b)
	ended := record.LastMove.Until(b.BindingSpec().GracefulEvictionTasks, now)
	if !recorded || ended == record.LastMove {
		return
	}
	ended.Beside = beside
	record.LastMove = ended
	annotations := maps.Clone(b.GetAnnotations())
	maps.Copy(annotations, Decision{Record: record}.Annotations())
	b.SetAnnotations(annotations)
}

// EndsBeside returns since when a Work of b goes with the end of a move, as b says: whoever removes what is in the cluster ends it
// without its having been deleted. Nil for all others. It says nothing about whether b is placed in the cluster again.
func EndsBeside(b workv1alpha2.Binding, work types.UID) *metav1.Time {
	if work == "" || !strings.Contains(b.GetAnnotations()[workv1alpha2.SchedulingDecisionAnnotation], string(work)) {
		return nil // nearly always, and cheaper than to decode it
	}
	record, _ := RecordOf(b)
	if move := record.LastMove; move != nil && slices.Contains(move.Beside, work) {
		return move.Ended
	}
	return nil
}
