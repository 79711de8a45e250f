package placement

import (
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// PeersOf returns the bindings among all that b wants to be with or apart from:
// others of its namespace that are in the same group and run somewhere. b itself
// may be among all.
func PeersOf(b workv1alpha2.Binding, all []workv1alpha2.Binding) framework.Peers {
	var out framework.Peers
	groups := b.BindingSpec().WorkloadAffinityGroups
	if groups == nil {
		return out
	}
	for _, other := range all {
		theirs := other.BindingSpec().WorkloadAffinityGroups
		if theirs == nil || other.GetNamespace() != b.GetNamespace() || other.GetName() == b.GetName() {
			continue
		}
		names := namesOf(other.BindingSpec().Clusters)
		if len(names) == 0 {
			continue
		}
		if groups.AffinityGroup != "" && groups.AffinityGroup == theirs.AffinityGroup {
			out.Affinity = append(out.Affinity, names)
		}
		if groups.AntiAffinityGroup != "" && groups.AntiAffinityGroup == theirs.AntiAffinityGroup {
			out.AntiAffinity = append(out.AntiAffinity, names)
		}
	}
	return out
}
