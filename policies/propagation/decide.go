package propagation

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Case is the input of Decide for one template.
type Case struct {
	// Template as it is, with its claim.
	Template *unstructured.Unstructured
	// Candidates are the policies that may select the template, in any order;
	// others in the list are ignored. Policies without a permanent id cannot claim
	// yet and are left out.
	Candidates []policyv1alpha1.Policy
	// Owner is the policy that the template's claim names, which OwnerOf finds if
	// Candidates are all policies; nil if that policy does not exist.
	Owner policyv1alpha1.Policy
	// HasOverride reports whether an override exists; the namespace is empty for
	// cluster-wide ones. Nil means that none does.
	HasOverride func(namespace, name string) bool
	// Skip is what is not propagated in addition to what never is.
	Skip SkipRules
	// NoPreemption leaves every template to the policy that has claimed it.
	NoPreemption bool
}

// Outcome is what becomes of a template.
type Outcome string

const (
	// Carried means that Policy carries it.
	Carried Outcome = "Carried"
	// Waiting means that Policy will carry it once its overrides exist. Until then the
	// template, and its binding if it has one, stay as they are.
	Waiting Outcome = "Waiting"
	// Released means that no policy carries it. Its claim is removed, and what
	// runs in clusters runs on.
	Released Outcome = "Released"
	// LeftAlone means that policies may not carry it, or not in this version of
	// its API. Nothing about it is changed.
	LeftAlone Outcome = "LeftAlone"
)

// Decision is which policy carries a template, or why none does.
type Decision struct {
	Outcome Outcome
	// Policy that carries the template, or will; nil if none does.
	Policy policyv1alpha1.Policy
	// From is the policy from which Policy takes the template by preemption; nil
	// where it does not.
	From policyv1alpha1.Policy
	// Missing are the overrides that the best policy waits for, in the order in
	// which it names them. With the outcome Released, that policy does not carry
	// the template yet.
	Missing []string
	// Why is the reason, for people: by what the policy selects the template, or
	// why none does.
	Why string
}

// OwnerOf returns the policy that has claimed obj; nil if it is not among all.
func OwnerOf(obj *unstructured.Unstructured, all []policyv1alpha1.Policy) policyv1alpha1.Policy {
	ref, ok := Claimed(obj)
	if !ok {
		return nil
	}
	for _, p := range all {
		if RefOf(p) == ref {
			return p
		}
	}
	return nil
}

// Decide returns which policy carries the template. The loops and every preview
// use this function.
//
// A claim is kept while its policy exists, is not being deleted and selects the
// template, unless another policy preempts it. Without such a claim, a policy of
// the template's own namespace beats a cluster-wide one, whatever their
// priorities; within one scope the higher explicit priority wins, then the more
// specific selector, then the name that sorts first. A policy whose overrides are
// missing takes no template, but the template does not fall to a worse policy
// meanwhile.
func Decide(c Case) Decision {
	r := selector.ResourceOf(c.Template)
	stays := c.Owner == nil || c.Owner.GetDeletionTimestamp() == nil
	if why := c.ineligible(r); why != "" {
		if stays {
			return Decision{Outcome: LeftAlone, Why: why}
		}
		return Decision{Outcome: Released, Why: why}
	}
	if c.Owner != nil && Selects(c.Owner, r) {
		return c.keep(r)
	}
	if c.Owner != nil {
		if v := otherVersion(c.Owner, r); v != "" {
			return Decision{Outcome: LeftAlone, Why: Title(c.Owner) + " carries it as " + v}
		}
	}
	best, ok := c.best(r, nil)
	if !ok {
		return Decision{Outcome: Released, Why: c.unselected(r)}
	}
	missing := MissingOverrides(best, c.has)
	switch {
	case len(missing) == 0:
		return Decision{Outcome: Carried, Policy: best, Why: found(best, r)}
	case c.bears():
		return Decision{Outcome: Released, Missing: missing, Why: Title(best) + " " + waits(missing)}
	default:
		return Decision{Outcome: Waiting, Policy: best, Missing: missing, Why: found(best, r)}
	}
}

// keep decides for a template whose claim is valid.
func (c *Case) keep(r selector.Resource) Decision {
	winner, ok := c.best(r, func(p policyv1alpha1.Policy) bool {
		return c.preempts(p) && len(MissingOverrides(p, c.has)) == 0
	})
	if ok {
		return Decision{Outcome: Carried, Policy: winner, From: c.Owner, Why: found(winner, r)}
	}
	out := Decision{Outcome: Carried, Policy: c.Owner, Why: found(c.Owner, r)}
	if out.Missing = MissingOverrides(c.Owner, c.has); len(out.Missing) > 0 {
		out.Outcome = Waiting
	}
	return out
}

// best returns the highest-ranking candidate that selects r and for which may is
// true; a nil may allows all.
func (c *Case) best(r selector.Resource, may func(policyv1alpha1.Policy) bool) (policyv1alpha1.Policy, bool) {
	var best policyv1alpha1.Policy
	var bestRank rank
	for _, p := range c.Candidates {
		rk, ok := rankOf(p, r)
		if ok && (best == nil || rk.compare(bestRank) > 0) && RefOf(p).ID != "" && (may == nil || may(p)) {
			best, bestRank = p, rk
		}
	}
	return best, best != nil
}

// preempts reports whether p takes the template from its owner.
func (c *Case) preempts(p policyv1alpha1.Policy) bool {
	return !c.NoPreemption && beats(p, c.Owner)
}

func (c *Case) has(namespace, name string) bool {
	return c.HasOverride != nil && c.HasOverride(namespace, name)
}

// bears reports whether the template has a claim, valid or not.
func (c *Case) bears() bool {
	_, ok := Claimed(c.Template)
	return ok
}

// ineligible returns why policies may not carry the template; empty if they may.
func (c *Case) ineligible(r selector.Resource) string {
	if owner := r.Labels[workv1alpha2.ResourceTemplateClaimedByLabel]; owner != "" {
		return "left to " + owner + ", which propagates it"
	}
	if !Propagates(r, c.Skip) {
		return "stays on the hub: its kind or namespace is never propagated"
	}
	return ""
}

// unselected returns why no policy selects a template.
func (c *Case) unselected(r selector.Resource) string {
	if slices.ContainsFunc(c.Candidates, func(p policyv1alpha1.Policy) bool { return OnlyByName(p, r) }) {
		return OwnWhy
	}
	return "no policy selects it"
}

// otherVersion returns the API version in which owner carries the same object;
// empty if it does not. The object must then be left alone in its other versions.
func otherVersion(owner policyv1alpha1.Policy, r selector.Resource) string {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return ""
	}
	for _, s := range owner.PropagationSpec().ResourceSelectors {
		other, err := schema.ParseGroupVersion(s.APIVersion)
		if err != nil || other.Group != gv.Group || s.APIVersion == r.APIVersion {
			continue
		}
		as := r
		as.APIVersion = s.APIVersion
		if Selects(owner, as) {
			return s.APIVersion
		}
	}
	return ""
}

// Title returns the kind and name of a policy, for users.
func Title(p policyv1alpha1.Policy) string { return KindOf(p) + " " + RefOf(p).String() }

// KindOf returns the kind of a policy.
func KindOf(p policyv1alpha1.Policy) string {
	if p.GetNamespace() == "" {
		return policyv1alpha1.ResourceKindClusterPropagationPolicy
	}
	return policyv1alpha1.ResourceKindPropagationPolicy
}

// found returns a text with p and how it selects r.
func found(p policyv1alpha1.Policy, r selector.Resource) string {
	return Title(p) + ", selected " + selector.Best(p.PropagationSpec().ResourceSelectors, r).String()
}

func waits(missing []string) string {
	return "waits for overrides: " + strings.Join(missing, ", ")
}

// beats reports whether challenger takes a template from the policy that has
// claimed it. It has to have the preemption "Always". A namespaced policy takes
// templates from any cluster-wide one; within one scope, a policy takes them from
// those with a lower priority. A cluster-wide policy never takes them from a
// namespaced one.
func beats(challenger, owner policyv1alpha1.Policy) bool {
	spec := challenger.PropagationSpec()
	if spec.Preemption != policyv1alpha1.PreemptAlways {
		return false
	}
	mine, theirs := challenger.GetNamespace() != "", owner.GetNamespace() != ""
	if mine != theirs {
		return mine
	}
	return priority(spec) > priority(owner.PropagationSpec())
}

// Selects reports whether p may carry r: p is not being deleted, covers r's
// namespace, and one of its selectors matches r.
func Selects(p policyv1alpha1.Policy, r selector.Resource) bool {
	_, ok := rankOf(p, r)
	return ok
}

// rank orders policies that select the same resource.
type rank struct {
	namespaced  bool
	priority    int32
	specificity selector.Specificity
	name        string
}

func rankOf(p policyv1alpha1.Policy, r selector.Resource) (rank, bool) {
	if p.GetDeletionTimestamp() != nil {
		return rank{}, false
	}
	rk := rankAlive(p, r)
	return rk, rk.specificity != selector.None
}

// rankAlive returns the rank that p would have if it were not being deleted.
func rankAlive(p policyv1alpha1.Policy, r selector.Resource) rank {
	spec, ns := p.PropagationSpec(), p.GetNamespace()
	rk := rank{namespaced: ns != "", priority: priority(spec), name: p.GetName()}
	if ns == "" || ns == r.Namespace {
		rk.specificity = specificity(spec.ResourceSelectors, r)
	}
	return rk
}

// compare returns a positive number where a ranks higher than b.
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

// MissingOverrides returns the names of the overrides that p waits for and that
// do not exist yet, in the order in which p names them. have is called for
// overrides of p's scope; the namespace is empty for cluster-wide ones.
func MissingOverrides(p policyv1alpha1.Policy, have func(namespace, name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(p.PropagationSpec().DependentOverrides), func(name string) bool {
		return have(p.GetNamespace(), name)
	})
}

// Awaits returns what a template waits for that a policy selects, where its
// binding is not for its latest version.
func Awaits(template *unstructured.Unstructured) string {
	if owner := template.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel]; owner != "" {
		return "is left to " + owner + ", as its label " + workv1alpha2.ResourceTemplateClaimedByLabel + " says: remove the label, and its policy carries it"
	}
	return "waits to be taken up by its policy"
}
