package explain

import (
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/explain/nearmiss"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// policies explains which policy carries the template, and what became of the others.
func (x *explainer) policies() {
	c := propagation.Case{
		Template: x.in.Template, Candidates: x.in.Policies, Owner: propagation.OwnerOf(x.in.Template, x.in.Policies),
		HasOverride: x.in.hasOverride, Skip: x.in.Skip,
	}
	x.decision = propagation.Decide(c)
	x.out.Carried = Carried{Why: x.decision.Why}
	if ref, ok := propagation.Claimed(x.in.Template); ok {
		x.out.Carried.By = refOf(ref)
		switch {
		case c.Owner == nil && x.in.blind(UnreadPolicies):
			x.out.Carried.Now, x.out.Carried.Why = x.out.Carried.By, x.out.Carried.By.String()+", which could not be read"
			return
		case c.Owner == nil:
			x.out.Carried.Why = fmt.Sprintf("%s, which claims it, does not exist; %s", x.out.Carried.By, x.decision.Why)
		}
	}
	if x.in.blind(UnreadPolicies) && x.decision.Policy == nil {
		x.out.Carried.Why = "not known, for policies could not be read"
		return
	}
	if x.decision.Policy != nil {
		x.out.Carried.Now = refOf(propagation.RefOf(x.decision.Policy))
	}
	r := selector.ResourceOf(x.in.Template)
	for _, v := range propagation.Verdicts(c) {
		if p, some := x.in.policy(v, r); some {
			x.out.Policies = append(x.out.Policies, p)
		}
	}
	x.policyProblems()
}

// policy returns what became of one policy; false where it is about other objects altogether.
func (in *Input) policy(v propagation.Verdict, r selector.Resource) (Policy, bool) {
	out := Policy{Ref: *refOf(v.Policy), Outcome: Lost, Why: v.Why, Priority: v.Priority, Selects: v.Selected.String()}
	switch v.Outcome {
	case propagation.Wins:
		out.Outcome = Won
	case propagation.WaitsForOverrides:
		out.Outcome = Waits
	case propagation.NotSelected:
		out.Outcome = NotSelected
		out.Why = nearMiss(in.Policies, v.Policy, r)
	case propagation.Preempted, propagation.DoesNotPreempt, propagation.ClusterWide, propagation.LowerPriority, propagation.LessSpecific,
		propagation.LaterName, propagation.BeingDeleted, propagation.NoID, propagation.NotForPolicies:
		// Lost, with the reason in v.Why
	}
	return out, out.Why != ""
}

// nearMiss returns why a policy that is about the template's kind does not select
// it; empty for one that is about others.
func nearMiss(all []policyv1alpha1.Policy, ref propagation.PolicyRef, r selector.Resource) string {
	i := slices.IndexFunc(all, func(p policyv1alpha1.Policy) bool { return propagation.RefOf(p) == ref })
	if i < 0 {
		return ""
	}
	return nearmiss.Why(all[i], r)
}

func (in *Input) hasOverride(namespace, name string) bool {
	return in.blind(UnreadOverrides) || slices.ContainsFunc(in.Overrides, func(o policyv1alpha1.Override) bool {
		return o.GetNamespace() == namespace && o.GetName() == name
	})
}

// policyProblems adds the problems that keep the template from being carried.
func (x *explainer) policyProblems() {
	d := x.decision
	if own := x.in.asPolicy(); own != nil {
		x.carries(own)
		return
	}
	x.problems = append(x.problems, x.in.strangers(d.Policy)...)
	x.problems = append(x.problems, x.in.strangersOfOverrides()...)
	switch {
	case len(d.Missing) > 0 && (d.Outcome == propagation.Waiting || d.Outcome == propagation.Released):
		kind := policyv1alpha1.ResourceKindOverridePolicy
		if d.Policy != nil && d.Policy.GetNamespace() == "" {
			kind = policyv1alpha1.ResourceKindClusterOverridePolicy
		}
		x.problems.add(Problem{
			Reason:  ReasonWaitingForOverrides,
			Message: "its policy waits for overrides that do not exist: " + strings.Join(d.Missing, ", "),
			Next:    fmt.Sprintf("create the %s, or take it out of spec.dependentOverrides", kind),
		})
	case d.Outcome == propagation.LeftAlone && x.synced():
		x.out.Carried.Why = "every cluster has it by itself; policies carry it only with the label " + policyv1alpha1.NamespaceSkipAutoPropagationLabel
	case d.Outcome == propagation.LeftAlone && x.out.Resource.hint().Ours() != "":
		x.out.Carried.Why = x.out.Resource.hint().Ours()
	case d.Outcome == propagation.LeftAlone:
		x.problems.add(Problem{Reason: ReasonNeverPropagated, Message: d.Why})
	case d.Policy == nil && x.in.Binding != nil && dependency.Attached(x.in.Binding):
		x.out.Carried.Why += ", and it goes along with what needs it"
	case d.Policy == nil && !selected(x.out.Policies) && x.in.Binding == nil && x.out.Resource.hint().Ours() != "":
		x.out.Carried.Why = x.out.Resource.hint().Ours()
	case d.Policy == nil && !selected(x.out.Policies) && propagation.Own(selector.ResourceOf(x.in.Template)):
		x.out.Carried.Why = own(x.in.Binding != nil)
	case d.Policy == nil && !selected(x.out.Policies):
		x.problems.add(x.noPolicy())
	}
}

// synced reports whether the template is a namespace, which the control plane creates in every cluster.
func (x *explainer) synced() bool {
	t := x.in.Template
	return t.GetAPIVersion() == "v1" && t.GetKind() == "Namespace" && plan.SyncsNamespace(t, x.in.Skip)
}

// selected reports whether any policy selects the template, though none carries it.
func selected(all []Policy) bool {
	return slices.ContainsFunc(all, func(p Policy) bool { return p.Outcome != NotSelected })
}

// own explains why no policy carries an object that the control plane made for itself: only a policy that names it
// can. If it is bound, a policy for all of its kind carried it before, and its copies in clusters stay.
func own(bound bool) string {
	if bound {
		return propagation.OwnWhy + "; what is in clusters of it stays there as it is until its binding is deleted"
	}
	return propagation.OwnWhy
}

func (x *explainer) noPolicy() Problem {
	r := x.out.Resource
	p := Problem{Reason: ReasonNoPolicy, Message: "no policy selects it"}
	near := nearmiss.Nearest(x.in.Policies, selector.ResourceOf(x.in.Template))
	switch about := len(x.out.Policies); {
	case near != nil || about == 0:
	case about == 1:
		p.Message += "; 1 policy is about its kind"
	default:
		p.Message += fmt.Sprintf("; %d policies are about its kind", about)
	}
	if x.in.Binding != nil {
		p.Message += "; what runs in clusters runs on, and its edits stay on the control plane"
	}
	if near != nil {
		p.Next = fmt.Sprintf("see why %s does not, or create a policy that selects %s %s", refOf(propagation.RefOf(near)), r.APIVersion, r.Kind)
		return p
	}
	p.Next = fmt.Sprintf("create a %s that selects %s %s", policyv1alpha1.ResourceKindClusterPropagationPolicy, r.APIVersion, r.Kind)
	if r.Namespace != "" {
		p.Next = fmt.Sprintf("create a %s in namespace %s that selects %s %s",
			policyv1alpha1.ResourceKindPropagationPolicy, r.Namespace, r.APIVersion, r.Kind)
	}
	return p
}

func refOf(ref propagation.PolicyRef) *Ref {
	kind := policyv1alpha1.ResourceKindPropagationPolicy
	if ref.Namespace == "" {
		kind = policyv1alpha1.ResourceKindClusterPropagationPolicy
	}
	return &Ref{Kind: kind, Namespace: ref.Namespace, Name: ref.Name}
}
