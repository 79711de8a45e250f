package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// Targets returns the clusters that should hold the binding, sorted by name:
// those that it is placed on, and those of bindings that need it. How many
// replicas its users have where they need it says nothing about its own: there
// it has as many as the template asks for.
func Targets(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	out := slices.Clone(spec.Clusters)
	seen := map[string]bool{}
	for _, t := range spec.Clusters {
		seen[t.Name] = true
	}
	for _, by := range spec.RequiredBy {
		for _, t := range by.Clusters {
			if !seen[t.Name] {
				seen[t.Name] = true
				out = append(out, workv1alpha2.TargetCluster{Name: t.Name, Replicas: spec.Replicas})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b workv1alpha2.TargetCluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// SpecOf returns the spec of a binding as clusters are to hold it: without the clusters from which its template
// was pruned before the others. It is the binding's own where there are none.
func SpecOf(b workv1alpha2.Binding) *workv1alpha2.ResourceBindingSpec {
	spec, pruned := b.BindingSpec(), PrunedFrom(b)
	if len(pruned) == 0 {
		return spec
	}
	here := *spec
	here.Clusters = slices.DeleteFunc(slices.Clone(spec.Clusters), func(t workv1alpha2.TargetCluster) bool { return slices.Contains(pruned, t.Name) })
	return &here
}

// PrunedFrom returns the clusters from which the template of a binding was pruned before the others, sorted.
func PrunedFrom(b workv1alpha2.Binding) []string {
	text := b.GetAnnotations()[gitopsv1alpha1.PrunedFromAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// SetPrunedFrom notes on b the clusters from which its template was pruned before the others: those alone, none
// if there are none.
func SetPrunedFrom(b workv1alpha2.Binding, clusters []string) {
	annotations := maps.Clone(b.GetAnnotations())
	if len(clusters) == 0 {
		delete(annotations, gitopsv1alpha1.PrunedFromAnnotation)
	} else {
		sorted := slices.Compact(slices.Sorted(slices.Values(clusters)))
		annotations = mapOf(annotations)
		annotations[gitopsv1alpha1.PrunedFromAnnotation] = strings.Join(sorted, ",")
	}
	b.SetAnnotations(annotations)
}

// Keeps returns the clusters whose Works stay, sorted: the targets, and those
// that are left gracefully; before another place is decided, all that are left. Works in any other cluster are to
// be deleted.
func Keeps(spec *workv1alpha2.ResourceBindingSpec) []string {
	var names []string
	for _, t := range Targets(spec) {
		names = append(names, t.Name)
	}
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.PurgeMode != policyv1alpha1.PurgeModeDirectly || len(spec.Clusters) == 0 {
			names = append(names, task.FromCluster)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LeaveFirst returns the clusters that must have removed their copy before the binding's
// Works are created elsewhere, sorted: two copies must never run at once. What is still placed in a
// cluster stays there until it has another place, as does what is placed nowhere yet.
func LeaveFirst(spec *workv1alpha2.ResourceBindingSpec) []string {
	if len(spec.Clusters) == 0 {
		return nil
	}
	var names []string
	for i := range spec.GracefulEvictionTasks {
		task := &spec.GracefulEvictionTasks[i]
		placed := slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == task.FromCluster })
		if task.PurgeMode == policyv1alpha1.PurgeModeDirectly && !placed {
			names = append(names, task.FromCluster)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MayLeaveFirst returns those of LeaveFirst that may go now: none while no target is there, as nothing would run anywhere then, and
// none of clusters that are away, where the removal would be executed whenever they are back, whatever has happened to the
// targets by then. Away reports whether nothing is heard of a cluster.
func MayLeaveFirst(spec *workv1alpha2.ResourceBindingSpec, away func(cluster string) bool) []string {
	if !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return !away(t.Name) }) {
		return nil
	}
	return slices.DeleteFunc(LeaveFirst(spec), away)
}

// splitCompletions divides the completions of a job like its replicas. It is
// empty for all that is no divided job with completions, and says nothing about
// clusters where only others need it.
func splitCompletions(spec *workv1alpha2.ResourceBindingSpec, template *unstructured.Unstructured) map[string]*int32 {
	ref, targets := &spec.Resource, spec.Clusters
	if ref.APIVersion != "batch/v1" || ref.Kind != "Job" || spec.Replicas <= 0 ||
		spec.Placement == nil || replicas.Duplicates(spec.Placement.ReplicaScheduling) {
		return nil
	}
	total, ok, err := unstructured.NestedInt64(template.Object, "spec", "completions")
	if err != nil || !ok {
		return nil
	}
	shares := make([]replicas.Share, len(targets))
	for i, t := range targets {
		shares[i] = replicas.Share{Name: t.Name, Weight: int64(t.Replicas)}
	}
	replicas.Webster(int32(total), shares, replicas.OrderOf(string(ref.UID)))
	out := make(map[string]*int32, len(shares))
	for i := range shares {
		out[shares[i].Name] = &shares[i].Count
	}
	return out
}
