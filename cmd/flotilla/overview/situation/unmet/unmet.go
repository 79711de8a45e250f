// Package unmet finds what keeps a commit from success although all conditions are ready, by the rules of commit
// statuses: a policy of Git that names clusters which do not exist, and workloads of Git that no policy carries any more.
//
// In go a policy and the names of clusters, or what Kustomizations own; out comes what is not as Git has it. It reads
// nothing and writes nothing.
package unmet

import (
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Misses reports whether the commit of a policy fails, as the policy selects clusters that do not exist.
func Misses(p policyv1alpha1.Policy, fleet []string) bool {
	_, committed := inventory.OwnerOf(p)
	return committed && len(propagation.Missed(&p.PropagationSpec().Placement, fleet)) > 0
}

// Released returns those of the templates that no policy carries any more of which a commit waits, as a Kustomization owns
// them and they may run something.
func Released(templates, owned []inventory.ID) []inventory.ID {
	return slices.DeleteFunc(slices.Clone(templates), func(id inventory.ID) bool { return !inventory.MayRun(id) || !slices.Contains(owned, id) })
}
