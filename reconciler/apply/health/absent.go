package health

import (
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// absent returns the clusters that the placement of a binding names and that are not in the fleet.
func absent(b workv1alpha2.Binding, fleet []string) []propagation.Stranger {
	wanted := propagation.WantedClusters(b.BindingSpec().Placement, b.BindingStatus().SchedulerObservedAffinityName)
	return propagation.Redact(b, propagation.StrangersAmong(wanted, fleet))
}
