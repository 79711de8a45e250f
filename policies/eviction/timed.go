package eviction

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Serving reports whether a copy may serve somebody, by what its cluster says of it: one that is healthy or of unknown
// health does, and, unless it has to as a whole, one of which a single replica is ready.
func Serving(health workv1alpha2.ResourceHealth, status *runtime.RawExtension, whole bool) bool {
	return health != workv1alpha2.ResourceUnhealthy || !whole && someReady(status)
}

// readyCounts are the fields by which kinds count what serves; one that is zero is left out.
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

// ownTime is when the time of a task is over, by what it says itself; zero where it says nothing, and where
// time does not end it.
func ownTime(task *workv1alpha2.GracefulEvictionTask) time.Time {
	if task.GracePeriodSeconds == nil || task.CreationTimestamp.IsZero() || task.Producer == workv1alpha2.EvictionProducerDrain {
		return time.Time{}
	}
	return Ending{}.until(task)
}

// Timed returns k with the time that ends it, where the task says one that is to come, and what clusters say of the
// binding lets it: the copy that is kept serves nobody, or one that replaces it is healthy. What was reported by a cluster
// that is silent does not count.
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
