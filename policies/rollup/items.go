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

// Items returns what the Works of one binding say, one item per cluster,
// sorted, whole: see Status for what a binding holds of it. Works that are being
// deleted say nothing, and one that is overdue is not applied, whatever it says; nil
// means that none is. Statuses are shared with the Works.
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

// ItemsOf returns the status items of the clusters of b: Items, and why others of its placement
// have no Work, where b says that.
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

// Overdue is the text of a cluster that has been Behind with a Work for long.
const Overdue = "the latest version is not known to have arrived"

// Behind reports whether a Work's cluster has yet to say how the latest version of it
// went. Of one whose dispatching is suspended nothing is awaited, and of one that is
// being deleted, or whose reporter names no versions, that is not known.
func Behind(w *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return w.DeletionTimestamp == nil && !ptr.Deref(w.Spec.SuspendDispatching, false) &&
		applied != nil && applied.ObservedGeneration > 0 && applied.ObservedGeneration < w.Generation
}

// SaysOverdue reports whether the status of a binding's clusters already shows that a Work
// of it is overdue.
func SaysOverdue(statuses []workv1alpha2.AggregatedStatusItem, w *workv1alpha1.Work) bool {
	cluster, ok := speaks(w)
	return ok && slices.ContainsFunc(statuses, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.ClusterName == cluster && item.AppliedMessage == Overdue
	})
}

// speaks returns the cluster that a Work speaks for; false where it does for
// none.
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
		// What is applied is an older version, whatever its conditions say.
		item.Applied, item.AppliedMessage = false, fault
	}
	// The template's own manifest is the first.
	at := slices.IndexFunc(w.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return m.Identifier.Ordinal == 0 })
	if at >= 0 && w.Status.ManifestStatuses[at].Status != nil {
		item.Status = &runtime.RawExtension{Raw: w.Status.ManifestStatuses[at].Status.Raw}
	}
	return item
}

// Shown returns the health of an object as it is shown to people and commits wait for
// it: one that waits in its cluster is not healthy yet, though that is no reason to
// take it away from there. Status is what the cluster reports of the object.
func Shown(health workv1alpha2.ResourceHealth, status *runtime.RawExtension) workv1alpha2.ResourceHealth {
	if health == workv1alpha2.ResourceHealthy && waits(status) {
		return workv1alpha2.ResourceUnhealthy
	}
	return health
}

// The texts for what is healthy and not done.
const (
	// Running is an object that is to come to an end, and has not yet.
	Running = "Running"
	// Updating is a workload of which the version before runs as well.
	Updating = "Updating"
)

// HealthText is the health of what a cluster reports, as it is shown to people: Healthy,
// Unhealthy, Unknown, Running or Updating; empty for nothing.
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

// waits reports whether a status is marked as that of an object that waits. Most are
// not, and are not read for it.
func waits(status *runtime.RawExtension) bool {
	if status == nil || !bytes.Contains(status.Raw, []byte(workv1alpha2.StatusWaiting)) {
		return false
	}
	var fields map[string]any
	if utiljson.Unmarshal(status.Raw, &fields) != nil {
		return false
	}
	marked, _ := fields[workv1alpha2.StatusWaiting].(bool)
	return marked
}

// Ready reports whether the copy in a cluster is what its Work asks for: sent,
// applied in the latest version, and healthy. A kind without a rule for its health
// is healthy once it is applied.
func Ready(w *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return w.DeletionTimestamp == nil && !ptr.Deref(w.Spec.SuspendDispatching, false) && w.Annotations[propagation.FaultAnnotation] == "" &&
		applied != nil && applied.Status == metav1.ConditionTrue && (applied.ObservedGeneration == 0 || applied.ObservedGeneration >= w.Generation) &&
		healthOf(w) == workv1alpha2.ResourceHealthy &&
		!slices.ContainsFunc(w.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return waits(m.Status) })
}

// healthOf returns the health of all that a Work holds: that of its worst
// manifest, and unknown where nothing is reported of one.
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

// FullyApplied reports whether every cluster that should hold the binding, and no
// other, has it applied. The transition time is left to who writes it.
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
