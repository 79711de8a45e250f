package rollup

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// AwaitsPods reports whether a workload waits for Pods that do not start or do not become ready, by its health and
// status in a cluster: it is not healthy, its version before still runs, or it is a Job not all of whose Pods are ready.
// A Deployment that has made no Pods awaits none: its status says why.
func AwaitsPods(kind schema.GroupKind, health workv1alpha2.ResourceHealth, status *runtime.RawExtension) bool {
	switch shown := Shown(health, status); {
	case shown == workv1alpha2.ResourceUnhealthy && kind.Kind == "Deployment":
		made, counted := decode(&workv1alpha2.AggregatedStatusItem{Status: status})["replicas"].(int64)
		return counted && made > 0
	case shown != workv1alpha2.ResourceHealthy:
		return shown == workv1alpha2.ResourceUnhealthy
	case kind.Kind != "Deployment" && kind.Kind != "Job": // the rest of the status says no more
		return false
	}
	switch HealthText(kind, health, status) {
	case string(workv1alpha2.ResourceUnhealthy), Updating:
		return true
	case Running:
		fields := decode(&workv1alpha2.AggregatedStatusItem{Status: status})
		active, _ := fields["active"].(int64)
		ready, _ := fields["ready"].(int64) // absent while it is zero
		return active > ready
	default:
		return false
	}
}

// PodsOf returns a Work's message about Pods that keep its object from being ready; empty for none, and where it is about an
// earlier version.
func PodsOf(w *workv1alpha1.Work) string {
	if w == nil {
		return ""
	}
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkPodsReady)
	if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != w.Generation {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// pods returns, as in ": ErrImagePull: no such image", what the Pods in a cluster say; empty where that is not known.
func (v *view) pods(cluster string) string {
	if text := excerpt.Line(excerpt.WithoutCredentials(PodsOf(v.works[cluster]))); text != "" {
		return ": " + excerpt.Runes(text, longestCause)
	}
	return ""
}
