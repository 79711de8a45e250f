package ended

import (
	"slices"
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// Copy is what had ended of a template in a cluster when that left the fleet.
type Copy struct {
	Cluster string `json:"cluster"`
	// Replicas that it was to have; zero for what has none.
	Replicas int32 `json:"replicas,omitempty"`
}

// Of returns those of before, and the copies in targets of b that are leaving, sorted by cluster. Nil where there are none.
func Of(b workv1alpha2.Binding, before []Copy, leaving func(cluster string) bool) []Copy {
	out := slices.Clone(before)
	for _, name := range failover.Finished(b) {
		if !leaving(name) || slices.ContainsFunc(out, func(c Copy) bool { return c.Cluster == name }) {
			continue
		}
		for _, t := range b.BindingSpec().Clusters {
			if t.Name == name {
				out = append(out, Copy{Cluster: name, Replicas: t.Replicas})
			}
		}
	}
	slices.SortFunc(out, func(a, b Copy) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// Rest returns spec as it is to be placed: without the copies, with so many replicas less where they are divided, and in so many
// clusters less where they are counted. Over says that nothing is left to be placed. Spec is not changed, and returned as it is
// where there are no copies.
func Rest(spec *workv1alpha2.ResourceBindingSpec, copies []Copy) (rest *workv1alpha2.ResourceBindingSpec, over bool) {
	if len(copies) == 0 {
		return spec, false
	}
	out := *spec
	out.Clusters = slices.DeleteFunc(slices.Clone(spec.Clusters), func(t workv1alpha2.TargetCluster) bool {
		return slices.ContainsFunc(copies, func(c Copy) bool { return c.Cluster == t.Name })
	})
	if out.Placement == nil {
		return &out, false
	}
	if out.Replicas > 0 && !replicas.Duplicates(out.Placement.ReplicaScheduling) {
		var done, others int32
		for _, c := range copies {
			done += c.Replicas
		}
		for _, t := range out.Clusters {
			others += t.Replicas
		}
		out.Replicas = max(spec.Replicas-done, min(spec.Replicas, others)) // fewer are wanted, may be: what runs is not cut short
		return &out, out.Replicas == 0
	}
	placement := *out.Placement
	placement.SpreadConstraints, over = fewer(placement.SpreadConstraints, len(copies))
	out.Placement = &placement
	return &out, over && len(out.Clusters) == 0
}

// fewer has constraints ask for so many clusters less. Over says that they ask for none.
func fewer(constraints []policyv1alpha1.SpreadConstraint, n int) (out []policyv1alpha1.SpreadConstraint, over bool) {
	out = slices.Clone(constraints)
	for i := range out {
		c := &out[i]
		if c.SpreadByLabel != "" || c.SpreadByField != policyv1alpha1.SpreadByFieldCluster && c.SpreadByField != "" {
			continue
		}
		c.MinGroups = max(c.MinGroups-n, 1)
		if c.MaxGroups > 0 { // else there is no limit
			over = over || c.MaxGroups <= n
			c.MaxGroups = max(c.MaxGroups-n, 1)
		}
	}
	return out, over
}
