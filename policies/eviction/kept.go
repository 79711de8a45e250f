package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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
	// Stuck says that it is placed there still: it cannot be moved.
	Stuck bool
	// By is when time ends that, whatever becomes of Until; zero for never, and where nobody knows: see Timed.
	By time.Time
	// Away says that nothing is heard of the cluster: it is left once that is back, too. See While.
	Away bool
	// over is when the time is over that the task itself says, zero where it does not.
	over time.Time
	// failed says that it is the application that failed there.
	failed bool
}

// keptBy returns what a task waits for.
func keptBy(clusters []workv1alpha2.TargetCluster, task *workv1alpha2.GracefulEvictionTask) Kept {
	why := cmp.Or(task.Message, task.Reason)
	switch {
	case Moves(task):
	case stands(clusters, task.FromCluster):
		return Kept{Cluster: task.FromCluster, Stuck: true, Why: why}
	case suppresses(task):
		return Kept{Cluster: task.FromCluster, Asked: true, Why: why}
	default:
		return Kept{Cluster: task.FromCluster, Until: namesOf(clusters), Why: why, over: ownTime(task), failed: task.Reason == workv1alpha2.EvictionReasonApplicationFailure}
	}
	if until := awaited(clusters, task); len(until) > 0 {
		return Kept{Cluster: task.FromCluster, Until: until}
	}
	return Kept{Cluster: task.FromCluster, Until: namesOf(clusters), Any: len(clusters) > 0}
}

// Because says why, and since when, a task has a cluster left: "untolerated taint {a:NoExecute}, since 2026-01-02 06:11:04 UTC".
// It is the message of the task where that does not say when it began, or where another place was only better.
func Because(task *workv1alpha2.GracefulEvictionTask) string {
	if Moves(task) || task.CreationTimestamp.IsZero() {
		return task.Message
	}
	return strings.TrimPrefix(cmp.Or(task.Message, task.Reason)+", since "+task.CreationTimestamp.UTC().Format(time.DateTime+" UTC"), ", ")
}

// Named returns the names of clusters that are left with why tasks have them left, where one does: "east (untolerated taint {a:NoExecute})".
func Named(clusters []string, tasks []workv1alpha2.GracefulEvictionTask) []string {
	out := slices.Clone(clusters)
	for i, name := range clusters {
		for j := range tasks {
			if t := &tasks[j]; t.FromCluster == name {
				out[i] = name + " (" + cmp.Or(t.Message, t.Reason) + ")"
			}
		}
	}
	return out
}

// String returns "kept in east until west is healthy", or "moved off east (untolerated taint {a:NoExecute}), and kept
// there until west is healthy".
func (k Kept) String() string {
	if k.Stuck {
		return "to be moved off " + strings.TrimSuffix(k.Cluster+" ("+k.Why+")", " ()") + ", and cannot be: it stays there " + k.Condition()
	}
	if k.Why != "" {
		return "moved off " + k.Cluster + " (" + k.Why + "), and kept there " + k.Condition()
	}
	return "kept in " + k.Cluster + " " + k.Condition()
}

// Condition returns "until west is healthy", "until west is healthy, or until 06:21:04 UTC", or "until east is back and west
// is healthy".
func (k Kept) Condition() string {
	switch {
	case k.Away:
		return "until " + k.Cluster + " is back and " + strings.TrimPrefix(k.healthy(), "until ")
	case !k.By.IsZero():
		return k.healthy() + ", or until " + k.By.UTC().Format(time.TimeOnly+" UTC")
	default:
		return k.healthy()
	}
}

// While returns k where some clusters are away, so that what would be removed from them waits: see failover.Away.
func (k Kept) While(away func(cluster string) bool) Kept {
	k.Away = len(k.Until) > 0 && away(k.Cluster)
	return k
}

// healthy is what has to be healthy first.
func (k Kept) healthy() string {
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
