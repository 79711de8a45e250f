package situation

import (
	"slices"
	"strings"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
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
	over := placement.PassedOver(b, *p.snapshot)
	if len(over) == 0 {
		return
	}
	if p.by == nil {
		p.by = map[string][]inventory.ID{}
	}
	key := strings.Join(over, ", ")
	p.by[key] = append(p.by[key], idOf(b.BindingSpec().Resource))
}

// notes returns one note for all templates that leave out the same clusters.
func (p *passed) notes() []Note {
	var out []Note
	for clusters, ids := range p.by {
		first := ids[0]
		out = append(out, Note{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name,
			Message: "its weights mean " + clusters + ", too, which was not there, or was drained, when it was divided: nothing moves by itself" + wording.Besides(ids),
			Next:    "flotilla rebalance " + wording.Object(first)})
	}
	slices.SortFunc(out, func(a, b Note) int { return strings.Compare(a.Message, b.Message) })
	return out
}
