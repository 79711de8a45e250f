package propagation

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Verdict is what Decide makes of one policy.
type Verdict struct {
	// Policy is the policy that the verdict is about, and Kind its kind.
	Policy PolicyRef
	Kind   string
	// Selected is how closely the policy's selectors describe the template; None
	// if they do not match.
	Selected selector.Specificity
	// Priority of the policy; 0 where it has none.
	Priority int32
	// Outcome is for programs, and stable.
	Outcome VerdictOutcome
	// Why is the same for people.
	Why string
}

// VerdictOutcome is what became of a policy.
type VerdictOutcome string

const (
	// Wins means that it carries the template.
	Wins VerdictOutcome = "Wins"
	// WaitsForOverrides means that it would carry the template if its overrides existed.
	WaitsForOverrides VerdictOutcome = "WaitsForOverrides"
	// Preempted means that it had claimed the template, and another policy takes
	// it.
	Preempted VerdictOutcome = "Preempted"
	// DoesNotPreempt means that another policy has claimed the template and keeps
	// it.
	DoesNotPreempt VerdictOutcome = "DoesNotPreempt"
	// ClusterWide means that a policy of the template's own namespace goes before
	// it.
	ClusterWide VerdictOutcome = "ClusterWide"
	// LowerPriority means that another policy of its scope has a higher priority.
	LowerPriority VerdictOutcome = "LowerPriority"
	// LessSpecific means that another policy of its scope and priority has a more
	// specific selector.
	LessSpecific VerdictOutcome = "LessSpecific"
	// LaterName means that another policy of its scope goes before it only by its
	// name.
	LaterName VerdictOutcome = "LaterName"
	// BeingDeleted means that it no longer carries anything.
	BeingDeleted VerdictOutcome = "BeingDeleted"
	// NoID means that it has no permanent id yet, and so cannot claim templates.
	NoID VerdictOutcome = "NoID"
	// NotSelected means that its selectors do not match the template.
	NotSelected VerdictOutcome = "NotSelected"
	// NotForPolicies means that no policy may carry the template, or not in this version.
	NotForPolicies VerdictOutcome = "NotForPolicies"
)

// Verdicts returns what became of each candidate of c: first the one that carries
// the template, then the others from the highest rank to the lowest, then those
// that do not select it. It calls Decide for the outcome.
func Verdicts(c Case) []Verdict {
	r := selector.ResourceOf(c.Template)
	d := Decide(c)
	type ranked struct {
		Verdict
		rank
	}
	var all []ranked
	for _, p := range c.Candidates {
		rk := rankAlive(p, r)
		v := Verdict{Policy: RefOf(p), Kind: KindOf(p), Selected: rk.specificity, Priority: rk.priority}
		v.Outcome, v.Why = c.judge(p, rk, d, r)
		all = append(all, ranked{v, rk})
	}
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		default:
			return 1
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(
			first(a.Outcome == Wins, b.Outcome == Wins),
			first(a.Selected != selector.None, b.Selected != selector.None),
			b.compare(a.rank),
		)
	})
	out := make([]Verdict, len(all))
	for i := range all {
		out[i] = all[i].Verdict
	}
	return out
}

// judge returns what became of p, given the decision.
func (c *Case) judge(p policyv1alpha1.Policy, rk rank, d Decision, r selector.Resource) (VerdictOutcome, string) {
	missing := MissingOverrides(p, c.has)
	switch {
	case rk.specificity == selector.None && OnlyByName(p, r):
		return NotSelected, OwnWhy
	case rk.specificity == selector.None:
		return NotSelected, "its selectors do not mean the template"
	case p.GetDeletionTimestamp() != nil:
		return BeingDeleted, "it is being deleted"
	case RefOf(p).ID == "":
		return NoID, "it has no permanent id yet"
	case d.Outcome == LeftAlone || (d.Outcome == Released && c.ineligible(r) != ""):
		return NotForPolicies, d.Why
	case d.Outcome == Carried && same(p, d.Policy):
		return Wins, c.praise(d, rk)
	case same(p, d.From):
		return Preempted, Title(d.Policy) + " takes the template from it: " + advantage(d.Policy, p)
	case len(missing) > 0 && c.waitsAlone(p, d):
		return WaitsForOverrides, waits(missing)
	}
	if winner := cmp.Or(d.From, d.Policy); winner != nil && c.Owner != nil && same(winner, c.Owner) && !same(p, c.Owner) && !c.preempts(p) {
		return DoesNotPreempt, c.whyNot(p)
	}
	return c.behind(p, rk, d, r)
}

// waitsAlone reports whether only its missing overrides keep p from carrying the
// template.
func (c *Case) waitsAlone(p policyv1alpha1.Policy, d Decision) bool {
	if d.Outcome == Waiting && same(p, d.Policy) {
		return true
	}
	with := *c
	with.HasOverride = func(namespace, name string) bool {
		return c.has(namespace, name) || (namespace == p.GetNamespace() && slices.Contains(p.PropagationSpec().DependentOverrides, name))
	}
	then := Decide(with)
	return then.Outcome == Carried && same(p, then.Policy)
}

// praise returns why the winner won.
func (c *Case) praise(d Decision, rk rank) string {
	by := fmt.Sprintf("selected %s, priority %d", rk.specificity, rk.priority)
	switch {
	case d.From != nil:
		return by + "; takes the template from " + Title(d.From) + ": " + advantage(d.Policy, d.From)
	case c.Owner != nil && same(d.Policy, c.Owner):
		return by + "; holds the template"
	default:
		return by
	}
}

// advantage returns why challenger takes a template from owner.
func advantage(challenger, owner policyv1alpha1.Policy) string {
	if challenger.GetNamespace() != "" && owner.GetNamespace() == "" {
		return "it preempts cluster-wide policies"
	}
	return fmt.Sprintf("it preempts, and its priority %d is above %d",
		priority(challenger.PropagationSpec()), priority(owner.PropagationSpec()))
}

// whyNot returns why p does not take the template from its owner.
func (c *Case) whyNot(p policyv1alpha1.Policy) string {
	text := Title(c.Owner) + " holds the template"
	switch {
	case p.PropagationSpec().Preemption != policyv1alpha1.PreemptAlways:
		return text + ", and this policy does not preempt"
	case c.NoPreemption:
		return text + ", and preemption is switched off"
	case p.GetNamespace() == "" && c.Owner.GetNamespace() != "":
		return text + "; a cluster-wide policy takes nothing from one of a namespace"
	default:
		return fmt.Sprintf("%s; to take it the priority %d would have to be above %d",
			text, priority(p.PropagationSpec()), priority(c.Owner.PropagationSpec()))
	}
}

// behind returns what ranks p behind the policy that won.
func (c *Case) behind(p policyv1alpha1.Policy, rk rank, d Decision, r selector.Resource) (VerdictOutcome, string) {
	winner := d.Policy
	if winner == nil { // released: the best one waits for its overrides
		winner, _ = c.best(r, nil)
	}
	if winner == nil || same(p, winner) {
		return WaitsForOverrides, waits(d.Missing)
	}
	ahead := rankAlive(winner, r)
	switch {
	case rk.namespaced != ahead.namespaced:
		return ClusterWide, Title(winner) + " is of the template's own namespace and comes first"
	case rk.priority != ahead.priority:
		return LowerPriority, fmt.Sprintf("its priority %d is below %d of %s", rk.priority, ahead.priority, Title(winner))
	case rk.specificity != ahead.specificity:
		return LessSpecific, fmt.Sprintf("it selects the template %s, %s selects it %s", rk.specificity, Title(winner), ahead.specificity)
	default:
		return LaterName, "its name sorts after that of " + Title(winner)
	}
}

func same(a, b policyv1alpha1.Policy) bool {
	return a != nil && b != nil && RefOf(a) == RefOf(b)
}
