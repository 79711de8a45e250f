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

// scheduled returns the condition for the decision record on b, and false where there is no record.
func scheduled(b workv1alpha2.Binding) (metav1.Condition, bool) {
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

// date sets since when unhealthy items are so, where the policy moves an unhealthy application. A time that b has
// recorded is kept. It is stored with the health, so that the next leader goes on counting from it.
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

// evictable returns the condition of a template that should be moved and cannot be, and false for all others.
func evictable(b workv1alpha2.Binding) (metav1.Condition, bool) {
	record, _ := placement.RecordOf(b)
	if record.Stays == nil {
		return metav1.Condition{}, false
	}
	return metav1.Condition{Type: workv1alpha2.Evictable, Status: metav1.ConditionFalse, Reason: workv1alpha2.NoReplacementReason, Message: record.Stays.Message}, true
}

// WithoutReplacement returns the clusters that a template should leave and cannot, if its status says so: those that its
// condition Evictable is about.
func WithoutReplacement(b workv1alpha2.Binding) []string {
	record, _ := placement.RecordOf(b)
	if record.Stays == nil || !meta.IsStatusConditionFalse(b.BindingStatus().Conditions, workv1alpha2.Evictable) {
		return nil
	}
	return record.Stays.Clusters
}

// Report is the input for the status of a binding.
type Report struct {
	// Works of the binding, in any order.
	Works []*workv1alpha1.Work
	// Overdue reports whether a cluster has been Behind with a Work for too long; nil means that none has.
	Overdue func(*workv1alpha1.Work) bool
	// Scheduler is the name of the scheduler whose decisions count; empty means
	// the default.
	Scheduler string
	// Total is the outcome of aggregating the template's status.
	Total Total
	// Now dates conditions that change.
	Now time.Time
}

// Total is the outcome of aggregating the status of a template.
type Total struct {
	// Fault is why there is no status; empty for no fault.
	Fault string
	// Pending means that the interpreter's answer is still awaited: until then the
	// condition Interpreted stays as it is.
	Pending bool
	// Shortened is what was left out of the status; empty for nothing.
	Shortened string
}

// Status returns the whole status that b should have. Where nothing has changed, it equals the status that b has.
// Whether each cluster has applied b, and its health, are always in it. Where b would become too large to be
// stored, the largest raw statuses are left out, which a condition reports. Raw statuses are shared with the Works.
func Status(b workv1alpha2.Binding, r Report) workv1alpha2.ResourceBindingStatus {
	status := *b.BindingStatus()
	// AggregatedStatus is built from the Works below, so it is not copied.
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
	if c, ok := scheduled(b); ok {
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

// schedule sets the fields for the placement in the record. The generation counts as observed once nothing that b
// asks for is left to decide; whether clusters have applied it does not matter.
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
