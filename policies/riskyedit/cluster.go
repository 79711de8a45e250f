package riskyedit

import (
	"fmt"
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Edit is one of Clusters: the fleet before it, and after it.
type Edit struct{ Before, After []*clusterv1alpha1.Cluster }

// Takes says what is wrong with an edit that takes a cluster from what a policy means, which may be another
// version of it afterwards; empty where it does not, or where nothing is wrong. Wrong is what nobody in the fleet
// had before, such as a label that is mistyped, however many clusters get it; and that a policy comes to mean no
// cluster, or asks for what none has any more. To take one of several out of a group is no mistake.
func (e Edit) Takes(was, is *policyv1alpha1.PropagationSpec, cluster string) string {
	before, after := named(e.Before, cluster), named(e.After, cluster)
	if before == nil || after == nil || !means(&was.Placement, before) || means(&is.Placement, after) {
		return ""
	}
	if novel := e.novel(before, after); novel != "" {
		return novel
	}
	for _, a := range affinities(is) {
		for _, w := range wanted(a) {
			if slices.ContainsFunc(e.Before, w.in) && !slices.ContainsFunc(e.After, w.in) {
				return w.vacant(e.After)
			}
		}
	}
	if slices.ContainsFunc(e.After, func(c *clusterv1alpha1.Cluster) bool { return means(&is.Placement, c) }) {
		return ""
	}
	return "what carries it means no cluster of the fleet any more"
}

func named(fleet []*clusterv1alpha1.Cluster, name string) *clusterv1alpha1.Cluster {
	for _, c := range fleet {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// trait is a label or a place of a cluster, as policies ask for it.
type trait struct{ kind, key, value string }

func (t trait) String() string {
	if t.kind == "label" {
		return "label " + t.key + "=" + t.value
	}
	return t.key + " " + t.value
}

// traitsOf are all that policies may ask for.
func traitsOf(c *clusterv1alpha1.Cluster) []trait {
	var out []trait
	for key, value := range c.Labels {
		out = append(out, trait{"label", key, value})
	}
	for _, key := range []string{selector.FieldProvider, selector.FieldRegion, selector.FieldZone} {
		for _, value := range selector.FieldValues(key, c) {
			out = append(out, trait{"field", key, value})
		}
	}
	slices.SortFunc(out, func(a, b trait) int {
		return slices.Compare([]string{a.kind, a.key, a.value}, []string{b.kind, b.key, b.value})
	})
	return out
}

// novel says what a cluster gets in the place of what it had, and that no cluster had before.
func (e Edit) novel(before, after *clusterv1alpha1.Cluster) string {
	had, has := traitsOf(before), traitsOf(after)
	gone := slices.DeleteFunc(slices.Clone(had), func(t trait) bool { return slices.Contains(has, t) })
	for _, t := range has {
		replaces := slices.ContainsFunc(gone, func(g trait) bool {
			return g.kind == t.kind && (g.key == t.key || g.value == t.value || propagation.Nearest(t.key, []string{g.key}) != "")
		})
		known := slices.ContainsFunc(e.Before, func(c *clusterv1alpha1.Cluster) bool { return slices.Contains(traitsOf(c), t) })
		if replaces && !known {
			return fmt.Sprintf("the Cluster %s gets the %s, which none had", after.Name, t)
		}
	}
	return ""
}
