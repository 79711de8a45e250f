package situation

import (
	"slices"
	"strings"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// passed are the templates that are not divided among all clusters that their weights mean: some had not joined,
// or were away, when that was decided.
type passed struct {
	clusters []*clusterv1alpha1.Cluster
	snapshot *placement.Snapshot // of these; nil until it is needed
	// by are the templates by the clusters that are left out, between commas.
	by map[string][]inventory.ID
}

// join adds a cluster. It is to be added before the bindings.
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

// notes are one for all templates that are left out of the same clusters.
func (p *passed) notes() []Note {
	var out []Note
	for clusters, ids := range p.by {
		first := ids[0]
		out = append(out, Note{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name,
			Message: "its weights mean " + clusters + ", too, which was not there, or was drained, when it was divided: nothing moves by itself" + besides(ids),
			Next:    "flotilla rebalance " + strings.ToLower(first.GroupKind.Kind) + "/" + first.Name + inNamespace(first.Namespace)})
	}
	slices.SortFunc(out, func(a, b Note) int { return strings.Compare(a.Message, b.Message) })
	return out
}
