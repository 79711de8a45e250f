package rollup

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Items returns what the Works of one binding say, one item per cluster,
// sorted. Works that are being deleted say nothing.
func Items(works []*workv1alpha1.Work) []workv1alpha2.AggregatedStatusItem {
	items := make([]workv1alpha2.AggregatedStatusItem, 0, len(works))
	for _, w := range works {
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if !ok || w.DeletionTimestamp != nil {
			continue
		}
		items = append(items, itemOf(cluster, w))
	}
	slices.SortFunc(items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	return items
}

func itemOf(cluster string, w *workv1alpha1.Work) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}
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
	if len(w.Status.ManifestStatuses) > 0 {
		m := &w.Status.ManifestStatuses[0]
		item.Status = m.Status.DeepCopy()
		if m.Health != "" {
			item.Health = m.Health
		}
	}
	return item
}

// FullyApplied says whether every cluster that should hold the binding, and no
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
