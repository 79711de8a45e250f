package eviction

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// DefaultGrace is how long a graceful eviction may take where nothing else is
// set.
const DefaultGrace = 10 * time.Minute

// Ending is the input on which the end of eviction tasks depends.
type Ending struct {
	// HasWork reports whether a cluster has a Work of the binding.
	HasWork func(cluster string) bool
	// Ready reports whether the copy in a cluster is what was last decided,
	// applied and healthy.
	Ready func(cluster string) bool
	// Serves reports whether the copy in a cluster may serve anybody, which is
	// true unless it is known that it does not; with whole, unless it is known to
	// be unhealthy. For a cluster that is not heard of, that is not known.
	Serves func(cluster string, whole bool) bool
	// Gone reports whether a cluster has left the fleet.
	Gone func(cluster string) bool
	// Away reports whether a removal from a cluster would have to wait until it is
	// heard of again; nil means that none would.
	Away func(cluster string) bool
	// Serving reports whether something runs in a cluster that leaves it as well and
	// may need the copy there; nil means that nothing does.
	Serving func(cluster string) bool
	// Returning returns until when the scheduler may take a cluster back that answers
	// again; zero where it may not, or has had its time. Nil means that for all.
	Returning func(cluster string) time.Time
	// Scheduled means that the binding's scheduler has nothing left to decide.
	Scheduled bool
	// Now is the time, and Grace how long a task takes that has no grace period of
	// its own; zero means DefaultGrace.
	Now   time.Time
	Grace time.Duration
}

// Of returns the eviction tasks of spec that go on, with their creation times
// set; the clusters of those that have ended; and when the next one will end by
// time alone, zero for never.
//
// A task of the scheduler ends once everything that replaces the old copy is
// ready or, where nothing does, one of the other clusters is; at once where the
// policy purges Directly; and where the task itself does, once the cluster has
// removed the copy.
//
// Any other task that purges Directly goes on as long as the cluster has the copy.
// Others end once all targets are ready. They also end by time, if a
// target is ready by then or the old copy serves nobody; but not for a drain.
// Until the scheduler has found other targets they go on, or until the scheduler
// takes the cluster back. Where the scheduler cannot decide because the task
// keeps it from the cluster, the task ends by time. suppressDeletion overrides
// all of this, either way.
//
// What serves others is kept in a cluster as long as they are.
func (e Ending) Of(spec *workv1alpha2.ResourceBindingSpec) (tasks []workv1alpha2.GracefulEvictionTask, ended []string, again time.Time) {
	seen := map[string]bool{}
	kept := suppressed(spec)
	for i := range spec.GracefulEvictionTasks {
		task := spec.GracefulEvictionTasks[i]
		over, until := false, time.Time{}
		if !e.waits(spec, &task) { // else it is kept, and no lookups are needed
			over, until = e.over(spec, &task)
		}
		if at := e.returns(&task); over && at.After(e.Now) {
			over, until = false, at
		}
		if seen[task.FromCluster] || kept[task.FromCluster] && !suppresses(&task) {
			continue // the first task counts, or one that keeps the copy
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
	// Without a Work in the cluster, the task only keeps the scheduler away from it.
	hasWork := placed || e.HasWork(task.FromCluster)
	switch {
	case e.Gone(task.FromCluster):
		return true, time.Time{}
	case suppresses(task):
		return false, time.Time{}
	case task.SuppressDeletion != nil:
		return true, time.Time{}
	case hasWork && len(spec.Clusters) == 0, placed:
		return false, time.Time{} // the scheduler has yet to find another place, or takes this one back
	case hasWork && task.PurgeMode == policyv1alpha1.PurgeModeDirectly:
		return false, time.Time{} // nothing starts elsewhere before the copy is gone
	}
	// Otherwise the scheduler may still choose another place.
	scheduled := len(spec.Clusters) > 0 && (e.Scheduled || !hasWork)
	if scheduled && !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return !e.Ready(t.Name) }) {
		return true, time.Time{}
	}
	if hasWork && task.Producer == workv1alpha2.EvictionProducerDrain {
		return false, time.Time{} // nothing failed: a partly ready copy counts, too
	}
	until := e.Until(task)
	if until.After(e.Now) {
		return false, until
	}
	return !e.last(spec, task), time.Time{}
}

// waits reports whether the old copy is kept whatever the state of the others, as
// it is not known when its cluster would remove it, or as it serves what runs
// there. This does not apply to tasks that remove the copy at once, as that was
// asked for.
func (e Ending) waits(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) bool {
	if e.Away == nil && e.Serving == nil || atOnce(spec, task) || !e.HasWork(task.FromCluster) || e.Gone(task.FromCluster) {
		return false
	}
	return e.Away != nil && e.Away(task.FromCluster) || e.Serving != nil && e.Serving(task.FromCluster)
}

// atOnce reports whether a task removes the copy, or keeps it, without waiting for
// anything.
func atOnce(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) bool {
	return task.SuppressDeletion != nil || task.PurgeMode == policyv1alpha1.PurgeModeDirectly || Moves(task) && Directly(spec)
}

// returns returns until when a task of a cluster that had failed leaves time to
// the scheduler to take the cluster back: what runs there is not to be removed and
// made anew a moment later.
func (e Ending) returns(task *workv1alpha2.GracefulEvictionTask) time.Time {
	if e.Returning == nil || task.Producer != workv1alpha2.EvictionProducerTaintManager || task.SuppressDeletion != nil || !e.HasWork(task.FromCluster) {
		return time.Time{}
	}
	return e.Returning(task.FromCluster)
}

// suppresses reports whether a task keeps the old copy until somebody changes the
// task.
func suppresses(task *workv1alpha2.GracefulEvictionTask) bool {
	if s := task.SuppressDeletion; s != nil {
		return *s
	}
	return task.PurgeMode == policyv1alpha1.PurgeModeNever
}

// suppressed returns the clusters that keep their copies.
func suppressed(spec *workv1alpha2.ResourceBindingSpec) map[string]bool {
	out := map[string]bool{}
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; suppresses(task) {
			out[task.FromCluster] = true
		}
	}
	return out
}

// Until returns when the time of a task is over.
func (e Ending) Until(task *workv1alpha2.GracefulEvictionTask) time.Time {
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

// last reports whether a cluster may have the only copy that serves. A copy of
// which only some replicas are ready does not count if the application failed
// there: that is why it was moved.
func (e Ending) last(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) bool {
	whole := task.Reason == workv1alpha2.EvictionReasonApplicationFailure
	if task.PurgeMode == policyv1alpha1.PurgeModeDirectly || !e.Serves(task.FromCluster, whole) {
		return false
	}
	return !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return e.Ready(t.Name) })
}

// moved reports whether a task of the scheduler has ended.
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
