// Package rescheduled tells what the descheduler has moved lately.
//
// In go bindings; out comes one text about those whose last move took replicas off clusters in which they found no node, for an hour
// after it. What failover or a policy moves is told by others.
package rescheduled

import (
	"cmp"
	"slices"
	"strings"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// lately is for how long after a move it is told: replicas that were moved show no other trace.
const lately = time.Hour

// Templates are those that were moved.
type Templates []template

type template struct {
	id   inventory.ID
	text string
}

// Take adds a template by its binding, if the descheduler has moved it lately.
func (t *Templates) Take(b workv1alpha2.Binding, id inventory.ID, now time.Time) {
	if !strings.Contains(b.GetAnnotations()[workv1alpha2.SchedulingDecisionAnnotation], `"lastMove"`) {
		return // nearly always, and cheaper than to decode it
	}
	record, _ := placement.RecordOf(b)
	if m := record.LastMove; m != nil && m.Replicas > 0 && now.Sub(m.At.Time) < lately {
		*t = append(*t, template{id, m.Past(b.BindingSpec().GracefulEvictionTasks, now)})
	}
}

// Text returns of which template to tell, and what; false for none.
func (t Templates) Text() (of inventory.ID, message string, some bool) {
	if len(t) == 0 {
		return inventory.ID{}, "", false
	}
	all := slices.SortedFunc(slices.Values(t), func(a, b template) int { return cmp.Compare(wording.Title(a.id), wording.Title(b.id)) })
	ids := make([]inventory.ID, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids[0], "the descheduler moved " + all[0].text + strings.Replace(wording.Besides(ids), "the same of", "so it did with", 1), true
}
