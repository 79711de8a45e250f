package placement

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// undrained returns the clusters that the binding is about to leave because they were to be
// drained, and that are not any more: it may be brought back before it has left.
func (p *placing) undrained() map[string]bool {
	out := map[string]bool{}
	for i := range p.spec.GracefulEvictionTasks {
		task := &p.spec.GracefulEvictionTasks[i]
		if task.Producer == workv1alpha2.EvictionProducerDrain && p.over(task) {
			out[task.FromCluster] = true
		}
	}
	return out
}

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

// steady returns targets of which none runs less than now, for a drain: what one runs less it runs
// less at once, and what another runs more is there later.
func (p *placing) steady(after []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	if !IsWorkload(p.spec) || InSets(p.spec) || replicas.Duplicates(strategy(p.spec)) || p.placementChanged() || replicasChanged(p.spec) || p.rebalances() {
		return after // somebody wants another division
	}
	return replicas.Steady(p.spec.Clusters, after)
}
