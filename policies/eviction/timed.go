package eviction

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Serving reports whether a copy may serve anybody, by what its cluster reports:
// a copy that is healthy or of unknown health does, and, unless whole is set, one
// with a single ready replica.
func Serving(health workv1alpha2.ResourceHealth, status *runtime.RawExtension, whole bool) bool {
	return health != workv1alpha2.ResourceUnhealthy || !whole && someReady(status)
}

// readyCounts are the fields in which kinds count replicas that serve; a count of
// zero is left out of a status.
var readyCounts = []string{"readyReplicas", "availableReplicas", "numberReady", "numberAvailable", "ready"}

// someReady reports whether a status counts any replica as ready.
func someReady(status *runtime.RawExtension) bool {
	var fields map[string]any
	if status == nil || utiljson.Unmarshal(status.Raw, &fields) != nil {
		return false
	}
	return slices.ContainsFunc(readyCounts, func(name string) bool {
		n, _ := fields[name].(int64)
		return n > 0
	})
}

// ownTime returns when the task's own grace period ends; zero where it has none,
// or where time does not end the task.
func ownTime(task *workv1alpha2.GracefulEvictionTask) time.Time {
	if task.GracePeriodSeconds == nil || task.CreationTimestamp.IsZero() || task.Producer == workv1alpha2.EvictionProducerDrain {
		return time.Time{}
	}
	return Ending{}.Until(task)
}

// Timed returns k with By set, if the task's grace period ends in the future and
// the task may end by time according to the binding's status: the old copy serves
// nobody, or a replacement is healthy. Reports of silent clusters do not count.
func (k Kept) Timed(b workv1alpha2.Binding, now time.Time, silent func(cluster string) bool) Kept {
	if !k.over.After(now) || len(k.Until) == 0 || k.Away {
		return k
	}
	ends := func(item workv1alpha2.AggregatedStatusItem) bool {
		if item.ClusterName == k.Cluster {
			return !Serving(item.Health, item.Status, k.failed) && !silent(k.Cluster)
		}
		return slices.Contains(k.Until, item.ClusterName) && item.Applied && item.Health == workv1alpha2.ResourceHealthy && !silent(item.ClusterName)
	}
	if slices.ContainsFunc(b.BindingStatus().AggregatedStatus, ends) {
		k.By = k.over
	}
	return k
}
