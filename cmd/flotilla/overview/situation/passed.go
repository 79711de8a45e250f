package situation

import (
	"slices"
	"strings"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/sorting"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// passed has the templates that are not divided among all clusters in their weights, because some had not joined,
// or were not available, at that time.
type passed struct {
	clusters []*clusterv1alpha1.Cluster
	snapshot *placement.Snapshot // of the clusters; nil until it is needed
	// by has the templates by the clusters that are left out, which are separated by commas.
	by map[string][]inventory.ID
	// drained has the templates that drains which are over moved off, by cluster.
	drained map[string][]inventory.ID
}

// join adds a cluster, before the bindings.
func (p *passed) join(c *clusterv1alpha1.Cluster) {
	p.clusters, p.snapshot = append(p.clusters, c), nil
}

// take adds a template by its binding.
func (p *passed) take(b workv1alpha2.Binding) {
	if len(b.BindingSpec().Clusters) >= len(p.clusters) {
		return
	}
	if p.snapshot == nil {
		snapshot := placement.NewSnapshot(p.clusters)
		p.snapshot = &snapshot
	}
	record, _ := placement.RecordOf(b)
	isDrained := func(name string) bool { return slices.Contains(record.Drained, name) }
	for _, c := range p.clusters {
		if isDrained(c.Name) && failover.Drainable(c) && !failover.Drains(c) {
			p.drained = added(p.drained, c.Name, b)
		}
	}
	over := slices.DeleteFunc(placement.PassedOver(b, *p.snapshot), isDrained)
	if len(over) > 0 {
		p.by = added(p.by, strings.Join(over, ", "), b)
	}
}

// added returns a list of templates by key with one more.
func added(to map[string][]inventory.ID, key string, b workv1alpha2.Binding) map[string][]inventory.ID {
	if to == nil {
		to = map[string][]inventory.ID{}
	}
	to[key] = append(to[key], idOf(b.BindingSpec().Resource))
	return to
}

// notes returns one note for all templates that leave out the same clusters, or that a drain moved off the same one.
func (p *passed) notes() []Note {
	var out []Note
	for cluster, ids := range p.drained {
		sorting.Objects(ids)
		out = append(out, Note{Kind: ids[0].GroupKind.Kind, Namespace: ids[0].Namespace, Name: ids[0].Name,
			Message: "a drain of " + cluster + " moved it off, and is over: it does not go back by itself" + wording.Besides(ids), Next: "flotilla uncordon " + cluster + " --return"})
	}
	for clusters, ids := range p.by {
		first := ids[0]
		out = append(out, Note{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name,
			Message: "its weights mean " + clusters + ", too, which was not there, or was drained or tainted, when it was divided: nothing moves by itself" + wording.Besides(ids),
			Next:    "flotilla rebalance " + wording.Object(first)})
	}
	slices.SortFunc(out, func(a, b Note) int { return strings.Compare(a.Message, b.Message) })
	return out
}
