package placement

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// PassedOver returns the clusters that would run some of b, were it divided anew, and were left out when it was
// divided last: they were away then, or had not joined. Nothing moves by itself because they have come. It
// knows that where weights are fixed; elsewhere what is free decides, and there is none.
func PassedOver(b workv1alpha2.Binding, snap Snapshot) []string {
	s := stateOf(b)
	if !Mine(b, "") || !IsWorkload(s.spec) || !replicas.Static(strategy(s.spec)) || len(s.spec.Clusters) == 0 || !s.record.Succeeded() || len(s.record.Plugins) > 0 || s.spec.WorkloadAffinityGroups != nil {
		return nil
	}
	if _, due := s.due(snap); due {
		return nil
	}
	result, err := Place(s.request(framework.Peers{}), snap, Options{})
	if err != nil {
		return nil
	}
	var out []string
	for _, t := range result.Clusters {
		runs := slices.ContainsFunc(s.spec.Clusters, func(have workv1alpha2.TargetCluster) bool { return have.Name == t.Name })
		if t.Replicas > 0 && !runs {
			out = append(out, t.Name)
		}
	}
	return out
}
