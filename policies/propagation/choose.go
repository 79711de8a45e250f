package propagation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Choose returns the policy that carries r, and false if none selects it.
//
// A policy of r's own namespace beats a cluster-wide one whatever their
// priorities. Among those of one scope the higher explicit priority wins, then
// the more specific selector, then the name that sorts first. Policies that
// are being deleted take nothing new.
func Choose(r selector.Resource, candidates []policyv1alpha1.Policy) (policyv1alpha1.Policy, bool) {
	var best policyv1alpha1.Policy
	var bestRank rank
	for _, p := range candidates {
		rk, ok := rankOf(p, r)
		if ok && (best == nil || rk.compare(bestRank) > 0) {
			best, bestRank = p, rk
		}
	}
	return best, best != nil
}

// Resolve returns the policy that carries obj given what claims it today, and
// false if none does. A claim is kept while its policy exists and selects obj,
// unless another policy takes the template from it; without a claim that holds,
// Choose decides. While the policy that claims obj is being deleted, nobody
// carries it.
func Resolve(obj *unstructured.Unstructured, candidates []policyv1alpha1.Policy) (policyv1alpha1.Policy, bool) {
	r := selector.ResourceOf(obj)
	holder := holderOf(obj, candidates)
	if holder == nil {
		return Choose(r, candidates)
	}
	if holder.GetDeletionTimestamp() != nil {
		return nil, false
	}
	if !Selects(holder, r) {
		return Choose(r, candidates)
	}
	challengers := slices.DeleteFunc(slices.Clone(candidates), func(p policyv1alpha1.Policy) bool {
		return !Beats(p, holder)
	})
	if winner, ok := Choose(r, challengers); ok {
		return winner, true
	}
	return holder, true
}

// holderOf returns the policy whose claim obj carries; nil if there is none.
func holderOf(obj *unstructured.Unstructured, candidates []policyv1alpha1.Policy) policyv1alpha1.Policy {
	ref, ok := Claimed(obj)
	if !ok {
		return nil
	}
	for _, p := range candidates {
		if p.GetNamespace() == ref.Namespace && p.GetName() == ref.Name && RefOf(p) == ref {
			return p
		}
	}
	return nil
}

// Selects says whether p may carry r: p exists, reaches r's namespace and one
// of its selectors means r.
func Selects(p policyv1alpha1.Policy, r selector.Resource) bool {
	_, ok := rankOf(p, r)
	return ok
}

// Beats says whether challenger takes a template from the policy that has
// claimed it. Only a policy with preemption "Always" takes templates: a
// namespaced policy from any cluster-wide one, and otherwise from one of its
// own scope with a lower priority. A cluster-wide policy never takes from a
// namespaced one.
func Beats(challenger, holder policyv1alpha1.Policy) bool {
	spec := challenger.PropagationSpec()
	if spec.Preemption != policyv1alpha1.PreemptAlways {
		return false
	}
	mine, theirs := challenger.GetNamespace() != "", holder.GetNamespace() != ""
	if mine != theirs {
		return mine
	}
	return priority(spec) > priority(holder.PropagationSpec())
}

// rank orders policies that select the same resource.
type rank struct {
	namespaced  bool
	priority    int32
	specificity selector.Specificity
	name        string
}

func rankOf(p policyv1alpha1.Policy, r selector.Resource) (rank, bool) {
	spec := p.PropagationSpec()
	ns := p.GetNamespace()
	if p.GetDeletionTimestamp() != nil || (ns != "" && ns != r.Namespace) {
		return rank{}, false
	}
	s := selector.Best(spec.ResourceSelectors, r)
	return rank{ns != "", priority(spec), s, p.GetName()}, s != selector.None
}

// compare returns a positive number where a wins over b.
func (a rank) compare(b rank) int {
	if a.namespaced != b.namespaced {
		if a.namespaced {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.priority, b.priority),
		cmp.Compare(a.specificity, b.specificity),
		cmp.Compare(b.name, a.name),
	)
}

func priority(spec *policyv1alpha1.PropagationSpec) int32 {
	if spec.Priority == nil {
		return 0
	}
	return *spec.Priority
}

// MissingOverrides returns the names of the overrides that p waits for and
// that do not exist yet, in the order in which p names them. have is asked
// about overrides of p's own scope; the namespace is empty for cluster-wide
// ones.
func MissingOverrides(p policyv1alpha1.Policy, have func(namespace, name string) bool) []string {
	var missing []string
	for _, name := range p.PropagationSpec().DependentOverrides {
		if !have(p.GetNamespace(), name) {
			missing = append(missing, name)
		}
	}
	return missing
}
