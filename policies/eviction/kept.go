package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
)

// mostAwaited is how many clusters the text of a task names.
const mostAwaited = 5

// Directly reports whether the policy has a template leave clusters before it
// starts in others.
func Directly(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Failover != nil && spec.Failover.Cluster != nil && spec.Failover.Cluster.PurgeMode == policyv1alpha1.PurgeModeDirectly
}

// Moves reports whether a task is the scheduler's own: the template was placed
// elsewhere, and so leaves the cluster.
func Moves(task *workv1alpha2.GracefulEvictionTask) bool {
	return task.Producer == workv1alpha2.EvictionProducerScheduler
}

// awaited returns the clusters that replace the old copy, in the order of the
// placement.
func awaited(clusters []workv1alpha2.TargetCluster, task *workv1alpha2.GracefulEvictionTask) []string {
	return slices.DeleteFunc(namesOf(clusters), func(name string) bool { return slices.Contains(task.ClustersBeforeFailover, name) })
}

// Kept is a cluster that a template leaves and still runs in.
type Kept struct {
	Cluster string
	// Until are the clusters in which it has to be healthy first; empty where
	// there is none that it could go to.
	Until []string
	// Any means that one of them is enough, as it ran in all of them before.
	Any bool
	// Asked means that somebody has asked to keep it.
	Asked bool
	// Why is why it had to leave; empty where another cluster was merely better.
	Why string
	// Stuck means that it is still placed there, as it cannot be moved.
	Stuck bool
	// Beside means that it runs nothing, and stays for as long as what runs in its
	// namespace is leaving the cluster as well.
	Beside bool
	// By is when time ends that, whatever happens in Until; zero for never, and
	// where it is not known: see Timed.
	By time.Time
	// Away means that the cluster is not heard of, so that its coming back is
	// awaited, too. See While.
	Away bool
	// over is when the task's own grace period ends; zero where it has none.
	over time.Time
	// failed means that the application failed there.
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

// Because returns why, and since when, a task has the template leave a cluster:
// "untolerated taint {a:NoExecute}, since 2026-01-02 06:11:04 UTC". It is the
// task's message where the task has no creation time, or where another cluster
// was merely better.
func Because(task *workv1alpha2.GracefulEvictionTask) string {
	if Moves(task) || task.CreationTimestamp.IsZero() {
		return task.Message
	}
	return strings.TrimPrefix(cmp.Or(task.Message, task.Reason)+", since "+task.CreationTimestamp.UTC().Format(time.DateTime+" UTC"), ", ")
}

// Named returns the names of clusters, with why the template leaves them where a
// task has that: "east (untolerated taint {a:NoExecute})".
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

// String returns a text such as "kept in east until west is healthy", or "moved
// off east (untolerated taint {a:NoExecute}), and kept there until west is
// healthy".
func (k Kept) String() string {
	if k.Stuck {
		return "to be moved off " + strings.TrimSuffix(k.Cluster+" ("+k.Why+")", " ()") + ", and cannot be: it stays there " + k.Condition()
	}
	if k.Why != "" {
		return "moved off " + k.Cluster + " (" + k.Why + "), and kept there " + k.Condition()
	}
	return "kept in " + k.Cluster + " " + k.Condition()
}

// Condition returns until when it is kept: "until west is healthy", "until west
// is healthy, or until 06:21:04 UTC", or "until east is back and west is
// healthy".
func (k Kept) Condition() string {
	switch {
	case k.Away:
		return "until " + k.Cluster + " is back and " + strings.TrimPrefix(k.healthy(), "until ") + k.beside()
	case !k.By.IsZero():
		return k.healthy() + k.beside() + ", or until " + k.By.UTC().Format(time.TimeOnly+" UTC")
	default:
		return k.healthy() + k.beside()
	}
}

// beside returns, as text, that what runs beside it has to leave first.
func (k Kept) beside() string {
	if !k.Beside {
		return ""
	}
	return " and what runs beside it has left"
}

// serves reports whether an object runs nothing itself, and may be needed by what
// runs in its namespace.
func serves(of *workv1alpha2.ObjectReference) bool {
	return of.Namespace != "" && running.Of(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind()) == running.Passive
}

// While returns k with Away set if removals from its cluster have to wait: see
// failover.Away.
func (k Kept) While(away func(cluster string) bool) Kept {
	k.Away = len(k.Until) > 0 && away(k.Cluster)
	return k
}

// healthy returns, as text, which clusters have to be healthy before the old copy
// is removed.
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

// KeptBy returns the clusters that a template leaves and still runs in, according
// to its eviction tasks.
func KeptBy(spec *workv1alpha2.ResourceBindingSpec) []Kept {
	var out []Kept
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			kept := keptBy(spec.Clusters, task)
			kept.Beside = len(kept.Until) > 0 && serves(&spec.Resource)
			out = append(out, kept)
		}
	}
	return out
}

// Message returns the message for users of a scheduler's task, given the
// template's new placement.
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
