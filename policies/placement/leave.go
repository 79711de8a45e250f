package placement

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// mostAwaited is how many clusters the message of an eviction task names.
const mostAwaited = 5

// evictions returns the eviction tasks of the binding once its clusters are
// after. A cluster is left by a task while there are others to run in: those that are
// new, or those that stay, which need not have it yet. One that leaves the fleet has
// none: what it holds goes with it. A cluster that is moved back to is left no more.
func (p *placing) evictions(after []workv1alpha2.TargetCluster) []workv1alpha2.GracefulEvictionTask {
	s := p.state
	grown := s.grown(after)
	var out []workv1alpha2.GracefulEvictionTask
	for _, task := range s.spec.GracefulEvictionTasks {
		if eviction.Moves(&task) {
			if stands(after, task.FromCluster) {
				continue
			}
			task.ClustersBeforeFailover = without(task.ClustersBeforeFailover, grown)
			task.Message = eviction.Message(after, &task)
		} else if p.returns[task.FromCluster] && stands(after, task.FromCluster) {
			continue
		}
		out = append(out, task)
	}
	before := without(namesOf(s.spec.Clusters), grown)
	gained := slices.ContainsFunc(after, func(t workv1alpha2.TargetCluster) bool { return !slices.Contains(before, t.Name) })
	for _, t := range s.spec.Clusters {
		c, known := p.in.Clusters.Cluster(t.Name)
		if len(after) == 0 || stands(after, t.Name) || !known || c.DeletionTimestamp != nil || left(out, t.Name) {
			continue
		}
		why, evicted := p.barred[t.Name]
		switch {
		case evicted:
			out = append(out, p.evict(t, why))
		case p.drains: // what goes with it is left as gently
			out = append(out, p.evict(t, failover.Cause{Why: "another cluster is drained", Drain: true}))
		case gained || !eviction.Directly(s.spec):
			out = append(out, s.leave(t, before, after, p.in))
		}
	}
	return out
}

// leave returns the task by which a target is left for others.
func (s *state) leave(t workv1alpha2.TargetCluster, before []string, after []workv1alpha2.TargetCluster, in Situation) workv1alpha2.GracefulEvictionTask {
	created := metav1.NewTime(in.Now.UTC().Truncate(time.Second))
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: t.Name, PurgeMode: policyv1alpha1.PurgeModeGracefully,
		Reason: workv1alpha2.EvictionReasonMoved, Producer: workv1alpha2.EvictionProducerScheduler,
		CreationTimestamp: &created, ClustersBeforeFailover: before,
	}
	if t.Replicas > 0 {
		task.Replicas = &t.Replicas
	}
	if eviction.Directly(s.spec) {
		task.PurgeMode = policyv1alpha1.PurgeModeDirectly
	}
	task.Message = eviction.Message(after, &task)
	return task
}

// grown returns the clusters that are to run more replicas than before:
// they take over from others, like new ones.
func (s *state) grown(after []workv1alpha2.TargetCluster) []string {
	if follows(s.spec) {
		return nil
	}
	var out []string
	for _, was := range s.spec.Clusters {
		if slices.ContainsFunc(after, func(t workv1alpha2.TargetCluster) bool { return t.Name == was.Name && t.Replicas > was.Replicas }) {
			out = append(out, was.Name)
		}
	}
	return out
}

func namesOf(targets []workv1alpha2.TargetCluster) []string {
	out := make([]string, len(targets))
	for i := range targets {
		out[i] = targets[i].Name
	}
	return out
}

func stands(targets []workv1alpha2.TargetCluster, name string) bool {
	return slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
}

func left(tasks []workv1alpha2.GracefulEvictionTask, name string) bool {
	return slices.ContainsFunc(tasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == name })
}

func without(names, dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(dropped, name) })
}
