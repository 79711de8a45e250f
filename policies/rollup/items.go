package rollup

import (
	"bytes"
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Items returns the status items for the Works of one binding, one per cluster, sorted. They are complete: see
// Status for what a binding holds of them. A Work that is being deleted has no item. One that is overdue counts as
// not applied, whatever it reports; a nil overdue means that none is. Statuses are shared with the Works.
func Items(works []*workv1alpha1.Work, overdue func(*workv1alpha1.Work) bool) []workv1alpha2.AggregatedStatusItem {
	items := make([]workv1alpha2.AggregatedStatusItem, 0, len(works))
	for _, w := range works {
		cluster, ok := speaks(w)
		if !ok {
			continue
		}
		item := itemOf(cluster, w)
		if item.Applied && overdue != nil && overdue(w) {
			item.Applied, item.AppliedMessage = false, Overdue
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	return items
}

// ItemsOf returns Items, and an item for each cluster of b's placement that has
// no Work and for which b records why.
func ItemsOf(b workv1alpha2.Binding, works []*workv1alpha1.Work, overdue func(*workv1alpha1.Work) bool) []workv1alpha2.AggregatedStatusItem {
	items := Items(works, overdue)
	faults := propagation.ClusterFaultsOf(b)
	if len(faults) == 0 {
		return items
	}
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		at, some := slices.BinarySearchFunc(items, target.Name, func(item workv1alpha2.AggregatedStatusItem, name string) int {
			return cmp.Compare(item.ClusterName, name)
		})
		if fault := faults[target.Name]; fault != "" && !some {
			items = slices.Insert(items, at, workv1alpha2.AggregatedStatusItem{ClusterName: target.Name, AppliedMessage: fault, Health: workv1alpha2.ResourceUnknown})
		}
	}
	return items
}

// Overdue is the message for a cluster that has been Behind with a Work for too long.
const Overdue = "the latest version is not known to have arrived"

// Behind reports whether a Work's cluster has yet to report the outcome of its latest version. It is false for a
// Work whose dispatching is suspended or that is being deleted, and where the reporter sets no observed generation.
func Behind(w *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return w.DeletionTimestamp == nil && !ptr.Deref(w.Spec.SuspendDispatching, false) &&
		applied != nil && applied.ObservedGeneration > 0 && applied.ObservedGeneration < w.Generation
}

// SaysOverdue reports whether the status of a binding already shows that one of its Works is overdue.
func SaysOverdue(statuses []workv1alpha2.AggregatedStatusItem, w *workv1alpha1.Work) bool {
	cluster, ok := speaks(w)
	return ok && slices.ContainsFunc(statuses, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.ClusterName == cluster && item.AppliedMessage == Overdue
	})
}

// speaks returns the cluster that a Work reports for; false where it is for none, or is being deleted.
func speaks(w *workv1alpha1.Work) (cluster string, ok bool) {
	cluster, ok = workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
	return cluster, ok && w.DeletionTimestamp == nil
}

func itemOf(cluster string, w *workv1alpha1.Work) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: healthOf(w), Drift: DriftOf(w)}
	if applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); applied != nil {
		item.Applied = applied.Status == metav1.ConditionTrue
		if !item.Applied {
			item.AppliedMessage = applied.Message
		}
	}
	if fault := w.Annotations[propagation.FaultAnnotation]; fault != "" {
		// An older version is applied, whatever the conditions say.
		item.Applied, item.AppliedMessage = false, fault
	}
	// The template's own manifest is the first.
	at := slices.IndexFunc(w.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return m.Identifier.Ordinal == 0 })
	if at >= 0 && w.Status.ManifestStatuses[at].Status != nil {
		item.Status = &runtime.RawExtension{Raw: w.Status.ManifestStatuses[at].Status.Raw}
	}
	return item
}

// Shown returns the health of an object as people see it and commit statuses wait
// for it: an object that waits in its cluster is not healthy yet, though that is
// no reason to move it. status is what the cluster reports of the object.
func Shown(health workv1alpha2.ResourceHealth, status *runtime.RawExtension) workv1alpha2.ResourceHealth {
	if health == workv1alpha2.ResourceHealthy && waits(status) {
		return workv1alpha2.ResourceUnhealthy
	}
	return health
}

// Texts of HealthText for objects that are healthy and not done.
const (
	// Running is for an object that runs to an end, and has not ended yet.
	Running = "Running"
	// Updating is for a workload of which the version before still runs.
	Updating = "Updating"
)

// HealthText returns the health that a cluster reports as it is shown to people:
// Healthy, Unhealthy, Unknown, Running or Updating; empty where none is reported.
func HealthText(kind schema.GroupKind, health workv1alpha2.ResourceHealth, status *runtime.RawExtension) string {
	shown := Shown(health, status)
	if shown != workv1alpha2.ResourceHealthy {
		return string(shown)
	}
	fields := decode(&workv1alpha2.AggregatedStatusItem{Status: status})
	switch state, _, known := verdict(kind, fields); {
	case known && state == Progressing:
		return Running
	case known && state == Failed:
		return string(workv1alpha2.ResourceUnhealthy)
	}
	if replaced(kind, fields) > 0 {
		return Updating
	}
	return string(shown)
}

// waits reports whether a status is marked as that of an object that waits. Most
// are not, and are not decoded to find out.
func waits(status *runtime.RawExtension) bool {
	if status == nil || !bytes.Contains(status.Raw, []byte(workv1alpha2.StatusWaiting)) {
		return false
	}
	var fields map[string]any
	if utiljson.Unmarshal(status.Raw, &fields) != nil {
		return false
	}
	waiting, _ := fields[workv1alpha2.StatusWaiting].(bool)
	return waiting
}

// Applied reports whether a cluster has a Work as it is.
func Applied(w *workv1alpha1.Work) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return c != nil && c.Status == metav1.ConditionTrue && (c.ObservedGeneration == 0 || c.ObservedGeneration >= w.Generation)
}

// Ready reports whether a cluster has what its Work asks for: sent, applied in the latest version, and healthy. A
// kind without a rule for health is healthy once it is applied.
func Ready(w *workv1alpha1.Work) bool {
	return !ptr.Deref(w.Spec.SuspendDispatching, false) && Applied(w) && well(w)
}

// ReadyAsSent reports what Ready does of the version that a cluster was sent last, where dispatching is suspended.
func ReadyAsSent(w *workv1alpha1.Work) bool {
	if !ptr.Deref(w.Spec.SuspendDispatching, false) {
		return Ready(w)
	}
	return meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) && well(w)
}

// well reports whether a cluster says that the objects of a Work are healthy.
func well(w *workv1alpha1.Work) bool {
	return w.DeletionTimestamp == nil && w.Annotations[propagation.FaultAnnotation] == "" && healthOf(w) == workv1alpha2.ResourceHealthy &&
		!slices.ContainsFunc(w.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return waits(m.Status) })
}

// healthOf returns the health of all objects of a Work: that of the worst, and
// Unknown where an object is not reported.
func healthOf(w *workv1alpha1.Work) workv1alpha2.ResourceHealth {
	statuses := w.Status.ManifestStatuses
	if len(statuses) == 0 {
		return workv1alpha2.ResourceUnknown
	}
	health := workv1alpha2.ResourceHealthy
	for i := range statuses {
		switch statuses[i].Health {
		case workv1alpha2.ResourceUnhealthy:
			return workv1alpha2.ResourceUnhealthy
		case workv1alpha2.ResourceHealthy:
		default:
			health = workv1alpha2.ResourceUnknown
		}
	}
	if len(statuses) < len(w.Spec.Workload.Manifests) {
		return workv1alpha2.ResourceUnknown
	}
	return health
}

// FullyApplied returns the condition that is true if exactly the clusters that should have the binding have applied
// it. Its transition time is left to the caller.
func FullyApplied(spec *workv1alpha2.ResourceBindingSpec, items []workv1alpha2.AggregatedStatusItem) metav1.Condition {
	want := plan.Keeps(spec)
	have := make([]string, 0, len(items))
	applied := len(want) > 0
	for i := range items {
		have = append(have, items[i].ClusterName)
		applied = applied && items[i].Applied
	}
	slices.Sort(have)
	if applied && slices.Equal(want, have) {
		return metav1.Condition{
			Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha2.FullyAppliedSuccessReason, Message: workv1alpha2.FullyAppliedSuccessMessage,
		}
	}
	return metav1.Condition{
		Type: workv1alpha2.FullyApplied, Status: metav1.ConditionFalse,
		Reason: workv1alpha2.FullyAppliedFailedReason, Message: workv1alpha2.FullyAppliedFailedMessage,
	}
}
