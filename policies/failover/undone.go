package failover

import (
	"maps"
	"slices"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// settled is how long a cluster has to be ready until what is healthy there counts as
// reported since.
const settled = time.Minute

// Undone returns the clusters whose moves are taken back, and when another one's will
// be by time alone; zero for never. A move is taken back once its grace is over, if its
// cause is, the old copy is healthy, and the new one is known to be unhealthy in each
// cluster: else two copies would be kept for ever. due are the clusters that must not
// run the template.
func (r Rules) Undone(b workv1alpha2.Binding, fleet Fleet, due Due, now time.Time) (clusters []string, next time.Time) {
	for cluster, at := range r.undoing(b, fleet, due, now) {
		if at.After(now) {
			next = Earlier(next, at)
		} else {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	return clusters, next
}

// Undoing returns a text for each cluster whose move is, or will be, taken back, as
// Returning does: "to west at 06:21:04 UTC, unless it is healthy where it is by then".
func (r Rules) Undoing(b workv1alpha2.Binding, fleet Fleet, now time.Time) []string {
	due, _ := r.Of(fleet, tolerationsOf(b.BindingSpec()), now)
	times := r.undoing(b, fleet, due, now)
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(times)) {
		when := "now, as it did not become healthy where it is"
		if at := times[cluster]; at.After(now) {
			when = "at " + clockTime(at, now) + ", unless it is healthy where it is by then"
		}
		out = append(out, "to "+cluster+" "+when)
	}
	return out
}

// undoing returns the clusters whose moves lead nowhere so far, and from when on they
// are taken back.
func (r Rules) undoing(b workv1alpha2.Binding, fleet Fleet, due Due, now time.Time) map[string]time.Time {
	spec := b.BindingSpec()
	if len(spec.GracefulEvictionTasks) == 0 || len(spec.Clusters) == 0 || slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool {
		return healthIn(b, t.Name) != workv1alpha2.ResourceUnhealthy
	}) {
		return nil
	}
	ends := map[string]time.Time{}
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; undoable(spec, task) && healthIn(b, task.FromCluster) == workv1alpha2.ResourceHealthy {
			ends[task.FromCluster] = eviction.Ending{Now: now, Grace: r.Grace}.Until(task)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	out, tolerations := map[string]time.Time{}, tolerationsOf(spec)
	fleet.Each(func(c *clusterv1alpha1.Cluster) bool {
		at, is := ends[c.Name]
		if _, bars := due[c.Name]; !is || bars || !Movable(c) || !isReady(c) || repels(c, tolerations, now) {
			return true
		}
		if since := readiness(c).LastTransitionTime.Time; !since.After(now) {
			at = Later(at, since.Add(settled))
		}
		out[c.Name] = at
		return true
	})
	return out
}

// MayUndo reports whether the move of a template off a cluster may be taken back, if it leads nowhere: see Rules.Undone.
func MayUndo(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool {
		return t.FromCluster == cluster && undoable(spec, &t)
	})
}

// undoable reports whether a task is for a fault, and leaves the old copy until the new one is healthy.
func undoable(spec *workv1alpha2.ResourceBindingSpec, task *workv1alpha2.GracefulEvictionTask) bool {
	if task.SuppressDeletion != nil || eviction.Moves(task) || slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == task.FromCluster }) {
		return false
	}
	switch task.PurgeMode {
	case policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeNever:
		return false
	}
	return task.Reason == workv1alpha2.EvictionReasonTaintUntolerated || task.Reason == workv1alpha2.EvictionReasonApplicationFailure
}

// healthIn returns the health of a template in a cluster, by its last report; empty where there is none.
func healthIn(b workv1alpha2.Binding, cluster string) workv1alpha2.ResourceHealth {
	for i := range b.BindingStatus().AggregatedStatus {
		if item := &b.BindingStatus().AggregatedStatus[i]; item.ClusterName == cluster {
			return item.Health
		}
	}
	return ""
}
