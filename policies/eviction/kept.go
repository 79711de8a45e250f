package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// mostAwaited is how many clusters the message of an eviction task names.
const mostAwaited = 5

// Directly reports whether the policy has clusters left before others are gone to.
func Directly(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Failover != nil && spec.Failover.Cluster != nil && spec.Failover.Cluster.PurgeMode == policyv1alpha1.PurgeModeDirectly
}

// Moves reports whether a task is the scheduler's own: a cluster that is left because
// the template was placed elsewhere.
func Moves(task *workv1alpha2.GracefulEvictionTask) bool {
	return task.Producer == workv1alpha2.EvictionProducerScheduler
}

// awaited returns the targets that replace what the task is about, sorted as the
// placement is.
func awaited(clusters []workv1alpha2.TargetCluster, task *workv1alpha2.GracefulEvictionTask) []string {
	return slices.DeleteFunc(namesOf(clusters), func(name string) bool { return slices.Contains(task.ClustersBeforeFailover, name) })
}

// Kept is a cluster that a template is to leave and still runs in.
type Kept struct {
	Cluster string
	// Until are the clusters that are to have it healthy before; empty where there
	// is none that it could go to.
	Until []string
	// Any says that one of them is enough: it ran in all of them before.
	Any bool
	// Asked says that somebody wants it to be kept until he says otherwise.
	Asked bool
	// Why is why it had to leave; empty where another place was only better.
	Why string
}

// keptBy returns what a task waits for.
func keptBy(clusters []workv1alpha2.TargetCluster, task *workv1alpha2.GracefulEvictionTask) Kept {
	if !Moves(task) && suppresses(task) {
		return Kept{Cluster: task.FromCluster, Asked: true, Why: cmp.Or(task.Message, task.Reason)}
	}
	if !Moves(task) {
		return Kept{Cluster: task.FromCluster, Until: namesOf(clusters), Why: cmp.Or(task.Message, task.Reason)}
	}
	if until := awaited(clusters, task); len(until) > 0 {
		return Kept{Cluster: task.FromCluster, Until: until}
	}
	return Kept{Cluster: task.FromCluster, Until: namesOf(clusters), Any: len(clusters) > 0}
}

// String returns "kept in east until west is healthy", or "moved off east (untolerated taint {a:NoExecute}), and kept
// there until west is healthy".
func (k Kept) String() string {
	if k.Why != "" {
		return "moved off " + k.Cluster + " (" + k.Why + "), and kept there " + k.Condition()
	}
	return "kept in " + k.Cluster + " " + k.Condition()
}

// Condition returns "until west is healthy".
func (k Kept) Condition() string {
	shown := k.Until[:min(len(k.Until), mostAwaited)]
	switch more := len(k.Until) - len(shown); {
	case k.Asked:
		return "until its eviction task says suppressDeletion: false"
	case len(k.Until) == 0:
		return "until another cluster fits"
	case len(k.Until) == 1:
		return "until " + k.Until[0] + " is healthy"
	case k.Any && more > 0:
		return fmt.Sprintf("until one of %s and %d more is healthy", strings.Join(shown, ", "), more)
	case k.Any:
		return "until one of " + strings.Join(shown, ", ") + " is healthy"
	case more > 0:
		return fmt.Sprintf("until %s and %d more are healthy", strings.Join(shown, ", "), more)
	default:
		return "until " + strings.Join(shown, ", ") + " are healthy"
	}
}

// KeptBy returns where a template runs that was placed elsewhere.
func KeptBy(spec *workv1alpha2.ResourceBindingSpec) []Kept {
	var out []Kept
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			out = append(out, keptBy(spec.Clusters, task))
		}
	}
	return out
}

// Message is what a task of the scheduler says to users, given where the template is placed.
func Message(after []workv1alpha2.TargetCluster, task *workv1alpha2.GracefulEvictionTask) string {
	if task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
		return "left before it starts elsewhere"
	}
	return "kept " + keptBy(after, task).Condition()
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
