package rollup

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
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

// Status returns the whole status that b should have given its Works and the
// name of the scheduler. Conditions that change are dated now. Where nothing
// changed, the result equals the status that b has.
func Status(b workv1alpha2.Binding, works []*workv1alpha1.Work, scheduler string, now time.Time) workv1alpha2.ResourceBindingStatus {
	status := *b.BindingStatus().DeepCopy()
	set := func(c metav1.Condition) {
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if c, ok := Scheduled(b); ok {
		set(c)
		schedule(&status, b, scheduler)
	}
	items := Items(works)
	if len(items) == 0 {
		items = nil
	}
	status.AggregatedStatus = items
	set(FullyApplied(b.BindingSpec(), items))
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
