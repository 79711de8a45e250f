package policies_test

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// verdicts Kind ns/name: how each policy that selects a template fared.
func (w *world) verdicts(args []string) (string, error) {
	template := w.templates[args[0]+" "+args[1]]
	if template == nil {
		return "", fmt.Errorf("no %s %s", args[0], args[1])
	}
	var out []string
	c := propagation.NewDirectory(values(w.policies), values(w.overrides), propagation.SkipRules{}).Case(template)
	for _, v := range propagation.Verdicts(c) {
		if v.Selected != selector.None {
			out = append(out, fmt.Sprintf("%s %s: %s: %s", v.Kind, v.Policy, v.Outcome, v.Why))
		}
	}
	return strings.Join(out, "\n"), nil
}

// bound Kind ns/name: what a binding says besides its clusters.
func (w *world) bound(args []string) (string, error) {
	b := w.bindings[args[0]+" "+args[1]]
	if b == nil {
		return "none", nil
	}
	spec := b.BindingSpec()
	claim := "nobody"
	if ref, ok := propagation.Claimed(b); ok {
		claim = ref.String()
	}
	out := []string{"claimed by " + claim, "conflicts: " + string(spec.ConflictResolution)}
	if spec.SchedulePriority != nil {
		out = append(out, fmt.Sprintf("priority: %d", spec.SchedulePriority.Priority))
	}
	if groups := spec.WorkloadAffinityGroups; groups != nil {
		out = append(out, fmt.Sprintf("together with: %s, apart from: %s", cmp.Or(groups.AffinityGroup, "-"), cmp.Or(groups.AntiAffinityGroup, "-")))
	}
	if s := spec.Suspension; s != nil {
		line := fmt.Sprintf("suspended: dispatching=%t scheduling=%t", ptr.Deref(s.Dispatching, false), ptr.Deref(s.Scheduling, false))
		if s.DispatchingOnClusters != nil {
			line += " on " + strings.Join(s.DispatchingOnClusters.ClusterNames, ", ")
		}
		out = append(out, line)
	}
	if ptr.Deref(spec.PreserveResourcesOnDeletion, false) {
		out = append(out, "preserved on deletion")
	}
	return strings.Join(out, "\n"), nil
}

// summary Kind ns/name: how much a policy carries, as its status says.
func (w *world) summary(args []string) (string, error) {
	p := w.policies[strings.Join(args, " ")]
	if p == nil {
		return "", fmt.Errorf("no %s", strings.Join(args, " "))
	}
	templates, bound, placed := 0, 0, 0
	for _, template := range w.templates {
		if ref, _ := propagation.Claimed(template); ref == propagation.RefOf(p) {
			templates++
		}
	}
	for _, b := range w.bindings {
		if ref, _ := propagation.Claimed(b); ref != propagation.RefOf(p) {
			continue
		}
		bound++
		if record, _ := placement.RecordOf(b); record.Succeeded() {
			placed++
		}
	}
	return fmt.Sprintf("templates %d, bindings %d, placed %d", templates, bound, placed), nil
}
