package rebalance

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// served reports whether everything that the rebalancer asks for is done.
func served(r *appsv1alpha1.WorkloadRebalancer) bool {
	return r.Status.ObservedGeneration == r.Generation && r.Status.FinishTime != nil
}

// list returns the workloads of the rebalancer, sorted: with what came of those
// that are done, and without result those that are to be asked for. What is named
// no longer stays in the list where it was asked for.
func list(r *appsv1alpha1.WorkloadRebalancer) []appsv1alpha1.ObservedWorkload {
	results := map[appsv1alpha1.ObjectReference]appsv1alpha1.ObservedWorkload{}
	for _, workload := range r.Spec.Workloads {
		results[workload] = appsv1alpha1.ObservedWorkload{Workload: workload}
	}
	for _, was := range r.Status.ObservedWorkloads {
		if was.Result == appsv1alpha1.RebalanceSuccessful {
			results[was.Workload] = was
		}
	}
	out := make([]appsv1alpha1.ObservedWorkload, 0, len(results))
	for _, item := range results {
		out = append(out, item)
	}
	slices.SortFunc(out, func(a, b appsv1alpha1.ObservedWorkload) int {
		x, y := a.Workload, b.Workload
		return cmp.Or(cmp.Compare(x.APIVersion, y.APIVersion), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return out
}

func result(done bool) (appsv1alpha1.RebalanceResult, appsv1alpha1.RebalanceFailedReason) {
	if done {
		return appsv1alpha1.RebalanceSuccessful, ""
	}
	return appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound
}

// complete dates status: it is finished once every workload has a result, and
// again after an edit that asked for more.
func complete(status *appsv1alpha1.WorkloadRebalancerStatus, r *appsv1alpha1.WorkloadRebalancer, now metav1.Time) {
	if served(r) {
		return
	}
	status.ObservedGeneration = r.Generation
	if slices.ContainsFunc(status.ObservedWorkloads, func(w appsv1alpha1.ObservedWorkload) bool { return w.Result == "" }) {
		status.FinishTime = nil
		return
	}
	if r.Status.FinishTime == nil || !slices.Equal(status.ObservedWorkloads, r.Status.ObservedWorkloads) {
		status.FinishTime = &now
	}
}

// keyOf returns the key of the binding of a workload.
func keyOf(w appsv1alpha1.ObjectReference) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: workv1alpha2.BindingName(w.Kind, w.Name)}
}

// carries reports whether b is the binding of the workload, and there to stay.
func carries(b workv1alpha2.Binding, w appsv1alpha1.ObjectReference) bool {
	is, wants := bindings.TemplateOf(b), schema.FromAPIVersionAndKind(w.APIVersion, w.Kind)
	return b.GetDeletionTimestamp() == nil && is.Group == wants.Group && is.Kind == wants.Kind && is.Name == w.Name
}

// requestAt returns the time of the request on b, and false where it stands on b
// already. It is the time when the rebalancer was made, or now where it was
// edited since. The scheduler answers requests that are later than the last
// placement, by whole seconds.
func requestAt(b workv1alpha2.Binding, r *appsv1alpha1.WorkloadRebalancer, now time.Time) (metav1.Time, bool) {
	at, last := r.CreationTimestamp.Time, lastPlaced(b)
	if r.Generation > 1 {
		at = now.UTC().Truncate(time.Second)
	}
	if was := b.BindingSpec().RescheduleTriggeredAt; was != nil {
		if r.Generation <= 1 && !was.Time.Before(at) {
			return metav1.Time{}, false
		}
		if was.After(last) {
			last = was.Time
		}
	}
	if !at.After(last) {
		at = last.Add(time.Second)
	}
	return metav1.NewTime(at), true
}

// lastPlaced returns when b was last placed; zero if never.
func lastPlaced(b workv1alpha2.Binding) time.Time {
	var last time.Time
	if t := b.BindingStatus().LastScheduledTime; t != nil {
		last = t.Time
	}
	if r, ok := placement.RecordOf(b); ok && r.Succeeded() && r.At.After(last) {
		last = r.At.Time
	}
	return last
}
