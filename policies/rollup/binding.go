package rollup

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// Scheduled returns the condition that the decision record on b stands for,
// and false where there is no record.
func Scheduled(b workv1alpha2.Binding) (metav1.Condition, bool) {
	record, ok := placement.RecordOf(b)
	if !ok {
		return metav1.Condition{}, false
	}
	c := metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: record.Reason, Message: record.Message,
	}
	if record.Succeeded() {
		c.Status = metav1.ConditionTrue
	}
	return c, true
}

// date says in items since when they are unhealthy, where that moves the template: what b recorded of that before
// stays. It is written with the health, so that whoever leads next counts on.
func date(items []workv1alpha2.AggregatedStatusItem, b workv1alpha2.Binding, now time.Time) {
	if f := b.BindingSpec().Failover; f == nil || f.Application == nil {
		return
	}
	since := map[string]*metav1.Time{}
	for _, was := range b.BindingStatus().AggregatedStatus {
		if was.Health == workv1alpha2.ResourceUnhealthy {
			since[was.ClusterName] = was.UnhealthySince
		}
	}
	for i := range items {
		if items[i].Health != workv1alpha2.ResourceUnhealthy {
			continue
		}
		if items[i].UnhealthySince = since[items[i].ClusterName]; items[i].UnhealthySince == nil {
			items[i].UnhealthySince = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
		}
	}
}

// evictable returns the condition of a template that should be moved and has no place to go
// to, and false for all others.
func evictable(b workv1alpha2.Binding) (metav1.Condition, bool) {
	record, _ := placement.RecordOf(b)
	if record.Stays == nil {
		return metav1.Condition{}, false
	}
	return metav1.Condition{Type: workv1alpha2.Evictable, Status: metav1.ConditionFalse, Reason: workv1alpha2.NoReplacementReason, Message: record.Stays.Message}, true
}

// Report is what is known of a binding at one moment.
type Report struct {
	// Works of the binding, in any order.
	Works []*workv1alpha1.Work
	// Overdue reports whether a cluster has been Behind with a Work for long; nil means
	// that none has.
	Overdue func(*workv1alpha1.Work) bool
	// Scheduler is the name of the scheduler whose decisions count; empty means
	// the default.
	Scheduler string
	// Total is what became of the template's status.
	Total Total
	// Now dates conditions that change.
	Now time.Time
}

// Total is what became of the status of a template.
type Total struct {
	// Fault is why there is none; empty for no fault.
	Fault string
	// Pending says that the answer is on its way: what the binding says of
	// interpretation stays as it is until then.
	Pending bool
	// Shortened says what was left out of it; empty for nothing.
	Shortened string
}

// Status returns the whole status that b should have. Where nothing changed, the
// result equals the status that b has. What each cluster has applied and how
// healthy it is always stays; of raw statuses the largest are left out where b
// would become too large to be stored, which a condition reports. Raw statuses are
// shared with the Works.
func Status(b workv1alpha2.Binding, r Report) workv1alpha2.ResourceBindingStatus {
	status := *b.BindingStatus()
	status.AggregatedStatus = nil
	status = *status.DeepCopy()
	keep := func(kind string, c metav1.Condition, ok bool) {
		if !ok {
			meta.RemoveStatusCondition(&status.Conditions, kind)
			return
		}
		c.LastTransitionTime = metav1.NewTime(r.Now.UTC().Truncate(time.Second))
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if c, ok := Scheduled(b); ok {
		keep(c.Type, c, true)
		schedule(&status, b, r.Scheduler)
	}
	evictable, stays := evictable(b)
	keep(workv1alpha2.Evictable, evictable, stays)
	items := ItemsOf(b, r.Works, r.Overdue)
	date(items, b, r.Now)
	full := FullyApplied(plan.SpecOf(b), items)
	keep(full.Type, full, true)
	if !r.Total.Pending {
		c, ok := interpreted(r.Works, r.Total.Fault, b.GetAnnotations()[dependency.FaultAnnotation])
		keep(workv1alpha2.Interpreted, c, ok)
	}
	c, ok := drifted(r.Works)
	keep(workv1alpha2.Drifted, c, ok)
	c, ok = truncated(fit(b, items), len(items), r.Total.Shortened)
	keep(workv1alpha2.StatusTruncated, c, ok)
	if len(items) > 0 {
		status.AggregatedStatus = slices.Clip(items)
	}
	return status
}

// schedule reports the placement that the record stands for. The generation
// counts as observed once nothing that b asks for is left to decide: what
// clusters do afterwards is no news of b.
func schedule(status *workv1alpha2.ResourceBindingStatus, b workv1alpha2.Binding, scheduler string) {
	record, _ := placement.RecordOf(b)
	if at := record.LastPlaced(); at != nil && (record.Succeeded() || status.LastScheduledTime == nil || status.LastScheduledTime.Before(at)) {
		status.LastScheduledTime = at
	}
	if !record.Succeeded() {
		return
	}
	status.SchedulerObservedAffinityName = record.AffinityName
	if placement.Mine(b, scheduler) && placement.Answered(b) {
		status.SchedulerObservedGeneration = b.GetGeneration()
	}
}
