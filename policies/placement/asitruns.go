package placement

import (
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// AsItRuns returns b as if it asked for the replicas that are placed, and false where it asks for no more than those. It is for what
// has to leave a cluster while a quota forbids the replicas that it wants besides: what runs may go on elsewhere, as that takes
// no more of the quota.
func AsItRuns(b workv1alpha2.Binding) (workv1alpha2.Binding, bool) {
	spec := b.BindingSpec()
	if InSets(spec) {
		return b, false
	}
	divided := spec.Placement != nil && spec.Placement.ReplicaScheduling != nil && spec.Placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided
	var placed int32
	for _, t := range spec.Clusters {
		if divided {
			placed += t.Replicas
		} else {
			placed = max(placed, t.Replicas)
		}
	}
	if placed <= 0 || placed >= spec.Replicas {
		return b, false
	}
	out := b.DeepCopyObject().(workv1alpha2.Binding)
	out.BindingSpec().Replicas = placed
	return out, true
}
