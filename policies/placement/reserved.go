package placement

import (
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
)

// CapacityMatters reports whether the free resources of clusters have any influence on
// where the binding is placed.
func CapacityMatters(spec *workv1alpha2.ResourceBindingSpec) bool {
	p := spec.Placement
	if p == nil {
		p = &policyv1alpha1.Placement{}
	}
	return capacityMatters(spec, p)
}

// WithReservations returns a snapshot in which of each cluster that loads names its
// load is reserved, in all; nil ends the reservation. s stays as it is, and
// the two share all other clusters.
func (s Snapshot) WithReservations(loads map[string]*estimate.Load) Snapshot {
	if len(loads) == 0 {
		return s
	}
	clusters := slices.Clone(s.clusters)
	for name, load := range loads {
		if i, ok := slices.BinarySearchFunc(clusters, name, nameCompare); ok {
			changed := *clusters[i]
			changed.Reserved = load
			clusters[i] = &changed
		}
	}
	return Snapshot{clusters: clusters}
}

// Reserved returns what is reserved of the cluster; nil where there is nothing.
func (s Snapshot) Reserved(cluster string) *estimate.Load {
	i, ok := slices.BinarySearchFunc(s.clusters, cluster, nameCompare)
	if !ok {
		return nil
	}
	return s.clusters[i].Reserved
}

// HasCapacity reports whether the cluster has capacity for at least one more replica of the
// workload, or set of its components, by all that it counts and that was reserved.
func (s Snapshot) HasCapacity(cluster string, spec *workv1alpha2.ResourceBindingSpec) bool {
	i, ok := slices.BinarySearchFunc(s.clusters, cluster, nameCompare)
	return ok && s.clusters[i].Free.Less(s.clusters[i].Reserved).Fits(NeedOf(spec)) > 0
}
