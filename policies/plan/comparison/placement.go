package comparison

import (
	"strings"

	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// place adds how a template moves, if it does.
func (c *comparer) place(id identity, was, is holding) {
	out := Placement{Object: c.object(id), PolicyBefore: policyOf(was.plan), Policy: policyOf(is.plan), Shifts: shifts(was.targets, is.targets)}
	if len(out.Shifts) == 0 {
		return
	}
	out.Why = whyMoved(out.PolicyBefore, out.Policy, was.plan, is.plan)
	c.placements = append(c.placements, out)
}

// shifts compares two placements, which are sorted by cluster.
func shifts(was, is []workv1alpha2.TargetCluster) []Shift {
	before, after := replicasIn(was), replicasIn(is)
	var out []Shift
	for _, cluster := range union(before, after) {
		s := Shift{Cluster: cluster}
		if n, had := before[cluster]; had {
			s.Before = ptr.To(n)
		}
		if n, has := after[cluster]; has {
			s.After = ptr.To(n)
		}
		if !ptr.Equal(s.Before, s.After) {
			out = append(out, s)
		}
	}
	return out
}

func replicasIn(targets []workv1alpha2.TargetCluster) map[string]int32 {
	out := make(map[string]int32, len(targets))
	for _, t := range targets {
		out[t.Name] = t.Replicas
	}
	return out
}

func policyOf(p *plan.TemplatePlan) string {
	if p == nil || p.Policy == nil {
		return ""
	}
	return propagation.Title(p.Policy)
}

// whyMoved is why a template has another placement.
func whyMoved(before, after string, was, is *plan.TemplatePlan) string {
	if is == nil {
		return "its template is deleted"
	}
	if is.Dropped {
		return "nothing that is propagated needs it any more"
	}
	var parts []string
	switch {
	case was == nil:
		parts = append(parts, "new: "+is.Why)
	case before != after && after == "":
		parts = append(parts, "no policy carries it any more")
	case before != after && before == "":
		parts = append(parts, "carried by "+is.Why)
	case before != after:
		parts = append(parts, "carried by "+after+" instead of "+before)
	}
	if is.Binding != nil && was != nil {
		if record, ok := placement.RecordOf(is.Binding); ok && is.Placed != "" {
			parts = append(parts, is.Placed)
			if record.Message != "" && !record.Succeeded() {
				parts = append(parts, record.Message)
			}
		}
	}
	if len(parts) == 0 && is.Policy == nil && len(is.NeededBy) > 0 {
		parts = append(parts, "it goes where those go that need it")
	}
	if len(parts) == 0 {
		parts = append(parts, "its policy places it anew")
	}
	return strings.Join(parts, "; ")
}
