package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// A choice is which clusters a placement may choose, as far as it says so by names. The
// zero value chooses nothing by affinities: all clusters.
type choice struct {
	affinities int
	// named are those that an affinity names and does not exclude.
	named sets.Set[string]
	// open is how many affinities name none, and excluded how many of these exclude a
	// cluster.
	open     int
	excluded map[string]int
}

func choiceOf(p *policyv1alpha1.Placement) choice {
	c := choice{named: sets.New[string](), excluded: map[string]int{}}
	if p.ClusterAffinity != nil {
		c.add(p.ClusterAffinity)
	}
	for i := range p.ClusterAffinities {
		t := &p.ClusterAffinities[i]
		c.add(&t.ClusterAffinity)
		for j := range t.OverflowAffinities {
			c.add(&t.OverflowAffinities[j].ClusterAffinity)
		}
	}
	return c
}

func (c *choice) add(a *policyv1alpha1.ClusterAffinity) {
	c.affinities++
	if len(a.ClusterNames) > 0 {
		c.named.Insert(allowed(a)...)
		return
	}
	c.open++
	for name := range sets.New(a.ExcludeClusters...) {
		c.excluded[name]++
	}
}

func (c *choice) may(name string) bool { return c.named.Has(name) || c.excluded[name] < c.open }

// strangers reports whether all clusters that target names are certainly not among
// those that may be chosen.
func (c *choice) strangers(target *policyv1alpha1.ClusterAffinity) bool {
	return c.affinities > 0 && len(target.ClusterNames) > 0 && !slices.ContainsFunc(target.ClusterNames, c.may)
}
