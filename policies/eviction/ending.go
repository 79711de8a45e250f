package eviction

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// DefaultGrace is how long a cluster is left gracefully, where nobody says.
const DefaultGrace = 10 * time.Minute

// Ending is what the end of eviction tasks depends on.
type Ending struct {
	// HasWork reports whether a cluster has a Work of the binding.
	HasWork func(cluster string) bool
	// Ready reports whether the copy in a cluster is what was decided last, applied and
	// healthy.
	Ready func(cluster string) bool
	// Serves reports whether the copy in a cluster that is left may serve somebody: it is not known to be
	// dead, or, as a whole, not known to be unhealthy. Of a cluster of which nothing is heard that is not known.
	Serves func(cluster string, whole bool) bool
	// Gone reports whether a cluster has left the fleet.
	Gone func(cluster string) bool
	// Away reports whether a removal from a cluster would have to wait until it is heard of again; nil: from none.
	Away func(cluster string) bool
	// Scheduled says that the binding's scheduler has nothing left to decide.
	Scheduled bool
	// Now is the time, and Grace how long a task takes that does not say so; zero means
	// DefaultGrace.
	Now   time.Time
	Grace time.Duration
}

// Of returns the eviction tasks of spec that go on, with the time at which they began, the
// clusters of those that have come to their end, and when one will come to its end by time
// alone; zero where none will.
//
// A cluster that the scheduler leaves may be left once all that replaces it is ready, or
// one of those that stay where nothing does, or at once where the policy says so; one that
// is to be left before that, when it has let go. One that is left for another reason may
// be left once all targets are ready, or when its time is over, if a target is ready or what is
// left serves nobody; of a cluster that is drained no time is. Before the scheduler has found other targets there is
// nothing to leave it for: it goes on until the scheduler has, or takes the cluster back; what the scheduler
// cannot decide, as the task keeps it from the cluster, ends by time. suppressDeletion says
// otherwise, either way.
func (e Ending) Of(spec *workv1alpha2.ResourceBindingSpec) (tasks []workv1alpha2.GracefulEvictionTask, ended []string, again time.Time) {
	seen := map[string]bool{}
	kept := suppressed(spec)
	for i := range spec.GracefulEvictionTasks {
		task := spec.GracefulEvictionTasks[i]
		over, until := false, time.Time{}
		if !e.waits(spec, &task) { // else nobody need be asked
			over, until = e.over(spec, &task)
		}
		if seen[task.FromCluster] || kept[task.FromCluster] && !suppresses(&task) {
			continue // of several the first one counts, or one that keeps the copy
		}
		seen[task.FromCluster] = true
		if over {
			ended = append(ended, task.FromCluster)
			continue
		}
		if task.CreationTimestamp.IsZero() {
			task.CreationTimestamp = &metav1.Time{Time: e.Now.UTC().Truncate(time.Second)}
		}
		if !until.IsZero() && (again.IsZero() || until.Before(again)) {
			again = until
		}
		tasks = append(tasks, task)
	}
	return tasks, ended, again
}

func (e Ending) over(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) (bool, time.Time) {
	if Moves(task) {
		return e.moved(spec, task), time.Time{}
	}
	placed := stands(spec.Clusters, task.FromCluster)
	hasWork := placed || e.HasWork(task.FromCluster) // else all that it does is to keep the scheduler from the cluster
	switch {
	case e.Gone(task.FromCluster):
		return true, time.Time{}
	case suppresses(task):
		return false, time.Time{}
	case task.SuppressDeletion != nil:
		return true, time.Time{}
	case hasWork && len(spec.Clusters) == 0, placed:
		return false, time.Time{} // the scheduler has yet to find it another place, or takes it back
	}
	scheduled := len(spec.Clusters) > 0 && (e.Scheduled || !hasWork) // else the scheduler may have another place in mind
	if scheduled && !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return !e.Ready(t.Name) }) {
		return true, time.Time{}
	}
	if hasWork && task.Producer == workv1alpha2.EvictionProducerDrain {
		return false, time.Time{} // nothing has failed there: a part of a copy counts as well
	}
	until := e.until(task)
	if until.After(e.Now) {
		return false, until
	}
	return !e.last(spec, task), time.Time{}
}

// waits reports whether a cluster is kept whatever is known of the others, as nobody knows when it would let go. Who has copies go at
// once means it.
func (e Ending) waits(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) bool {
	atOnce := task.SuppressDeletion != nil || task.PurgeMode == policyv1alpha1.PurgeModeDirectly || Moves(task) && Directly(spec)
	return e.Away != nil && !atOnce && e.HasWork(task.FromCluster) && e.Away(task.FromCluster) && !e.Gone(task.FromCluster)
}

// suppresses reports whether a task keeps the old copy until somebody says otherwise.
func suppresses(task *workv1alpha2.GracefulEvictionTask) bool {
	if s := task.SuppressDeletion; s != nil {
		return *s
	}
	return task.PurgeMode == policyv1alpha1.PurgeModeNever
}

// suppressed are the clusters that keep their copies.
func suppressed(spec *workv1alpha2.ResourceBindingSpec) map[string]bool {
	out := map[string]bool{}
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; suppresses(task) {
			out[task.FromCluster] = true
		}
	}
	return out
}

// until is when the time of a task is over.
func (e Ending) until(task *workv1alpha2.GracefulEvictionTask) time.Time {
	since, grace := e.Now, e.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	if !task.CreationTimestamp.IsZero() {
		since = task.CreationTimestamp.Time
	}
	if s := task.GracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return since.Add(grace)
}

// last reports whether a cluster that is left may have the only copy that serves. An application that failed there is moved
// although some of it may serve: that does not count.
func (e Ending) last(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) bool {
	whole := task.Reason == workv1alpha2.EvictionReasonApplicationFailure
	if task.PurgeMode == policyv1alpha1.PurgeModeDirectly || !e.Serves(task.FromCluster, whole) {
		return false
	}
	return !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return e.Ready(t.Name) })
}

// moved reports whether a task of the scheduler is over.
func (e Ending) moved(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) bool {
	switch {
	case !e.HasWork(task.FromCluster):
		return true
	case task.PurgeMode == policyv1alpha1.PurgeModeDirectly:
		return false
	case Directly(spec):
		return true
	}
	kept := keptBy(spec.Clusters, task)
	if kept.Any {
		return slices.ContainsFunc(kept.Until, e.Ready)
	}
	return len(kept.Until) > 0 && !slices.ContainsFunc(kept.Until, func(name string) bool { return !e.Ready(name) })
}
