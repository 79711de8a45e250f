package withdrawal

import (
	"fmt"
	"maps"
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Cluster says what is wrong with an edit of a Cluster: it comes to have a label that no other one of the fleet
// has, as the fleet is after the edit. Empty for nothing.
func Cluster(before, after *clusterv1alpha1.Cluster, fleet []*clusterv1alpha1.Cluster) string {
	for _, key := range slices.Sorted(maps.Keys(after.Labels)) {
		value := after.Labels[key]
		if was, had := before.Labels[key]; had && was == value {
			continue
		}
		if !slices.ContainsFunc(fleet, func(c *clusterv1alpha1.Cluster) bool {
			have, has := c.Labels[key]
			return c.Name != after.Name && has && have == value
		}) {
			return fmt.Sprintf("the Cluster %s gets the label %s=%s, which no other one has", after.Name, key, value)
		}
	}
	return ""
}

// Leaves reports whether a placement means a cluster, and another one, which takes its place, does not mean what
// becomes of that.
func Leaves(was, is *policyv1alpha1.PropagationSpec, before, after *clusterv1alpha1.Cluster) bool {
	return means(&was.Placement, before) && !means(&is.Placement, after)
}
