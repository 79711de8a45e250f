package placement

import (
	"slices"
	"strings"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
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

// left returns the clusters that the binding was moved off because something failed, once d is
// written; none where its policy does not have it return.
func (p *placing) left(d *Decision) []failover.Left {
	if p.spec.Failover == nil || p.spec.Failover.FailBackSeconds == nil {
		return nil
	}
	out := slices.Clone(p.back.Left)
	for _, name := range d.Evicts {
		if !p.barred[name].Drain {
			out = append(out, failover.Left{Cluster: name})
		}
	}
	answered := func(l failover.Left) bool {
		return d.Record.Succeeded() && (slices.Contains(p.back.Stable, l.Cluster) || p.rebalances() && l.Well != nil)
	}
	slices.SortStableFunc(out, func(a, b failover.Left) int { return strings.Compare(a.Cluster, b.Cluster) })
	out = slices.CompactFunc(out, func(a, b failover.Left) bool { return a.Cluster == b.Cluster })
	return slices.DeleteFunc(out, func(l failover.Left) bool {
		return stands(d.Clusters, l.Cluster) || answered(l)
	})
}

// home are the clusters that the binding is brought back to if it is placed afresh.
func (p *placing) home() []string {
	out := slices.Concat(p.undone, p.back.Stable)
	if p.rebalances() {
		out = append(out, p.record.Drained...)
	}
	return out
}

// steady returns targets of which none runs less than now, for a drain; see replicas.Steady.
func (p *placing) steady(after []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	if follows(p.spec) || InSets(p.spec) || p.placementChanged() || replicasChanged(p.spec) || afresh(p.state) {
		return after // somebody wants another division
	}
	return replicas.Steady(p.spec.Clusters, after)
}
