package placement

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// drained returns the clusters that the binding was moved off because they were drained, once d
// is written.
func (p *placing) drained(d *Decision) []string {
	var out []string
	answered := p.rebalances() && d.Record.Succeeded()
	for _, name := range p.record.Drained {
		_, barred := p.barred[name]
		if _, known := p.in.Clusters.Cluster(name); known && (barred || !answered) {
			out = append(out, name)
		}
	}
	for _, name := range d.Evicts {
		if p.barred[name].Drain {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return stands(d.Clusters, name) })
}

// steady returns targets of which none runs less than now, for a drain; see replicas.Steady.
func (p *placing) steady(after []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	if !IsWorkload(p.spec) || InSets(p.spec) || replicas.Duplicates(strategy(p.spec)) || p.placementChanged() || replicasChanged(p.spec) || p.rebalances() {
		return after // somebody wants another division
	}
	return replicas.Steady(p.spec.Clusters, after)
}
