package explain

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/explain/hint"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// asPolicy decodes the template as the propagation policy that it is; nil for
// other kinds, and for one that cannot be decoded.
func (in *Input) asPolicy() policyv1alpha1.Policy {
	var p policyv1alpha1.Policy
	switch gvk := in.Template.GroupVersionKind(); {
	case gvk.Group != policyv1alpha1.GroupVersion.Group:
		return nil
	case gvk.Kind == policyv1alpha1.ResourceKindPropagationPolicy:
		p = &policyv1alpha1.PropagationPolicy{}
	case gvk.Kind == policyv1alpha1.ResourceKindClusterPropagationPolicy:
		p = &policyv1alpha1.ClusterPropagationPolicy{}
	default:
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Template.Object, p); err != nil {
		return nil
	}
	return p
}

// carries explains a template that is a policy: what it carries, what keeps it
// from that, and which clusters it names that do not exist.
func (x *explainer) carries(p policyv1alpha1.Policy) {
	status := p.PropagationStatus()
	x.out.Carries = &Carries{Templates: status.Templates, Bindings: status.Bindings, Placed: status.Placed}
	x.problems = append(x.problems, x.in.strangers(p)...)
	describe := "flotilla describe " + x.out.Resource.hint().Args()
	ready := apimeta.FindStatusCondition(status.Conditions, policyv1alpha1.PolicyReady)
	switch {
	case x.in.Template.GetUID() == "":
	case ready == nil || ready.ObservedGeneration != p.GetGeneration():
		x.problems.add(Problem{Reason: ReasonPolicyNotReady, Message: "nobody has looked at it as it is now", Next: "wait a moment; if it stays so, see whether the control plane runs: flotilla status"})
	case ready.Status != metav1.ConditionTrue:
		x.problems.add(Problem{Reason: ReasonPolicyNotReady, Message: ready.Message, Next: "put right what it says: " + describe})
	case ready.Reason == policyv1alpha1.PolicyReasonNotTakenUp:
		x.problems.add(Problem{Reason: ReasonPolicyProblem, Message: ready.Message, Next: explains(status.LastProblem, "what it names")})
	case status.Templates == 0:
		x.problems.add(Problem{
			Reason: ReasonPolicyIdle, Message: "it carries nothing: there is no object that its selectors mean, or another policy carries it",
			Next: "compare its resourceSelectors with what there is; flotilla explain KIND/NAME says why an object is not carried",
		})
	case status.LastProblem != nil:
		x.problems.add(Problem{
			Reason: ReasonPolicyProblem, Message: fmt.Sprintf("the last problem is of %s: %s", status.LastProblem.Object, status.LastProblem.Message),
			Next: explains(status.LastProblem, "the template"),
		})
	}
}

// explains returns a hint to explain the template that a policy's problem is
// about; what stands for it where the problem does not name it.
func explains(p *policyv1alpha1.PolicyProblem, what string) string {
	if p == nil {
		return "flotilla explain KIND/NAME of " + what + " says more"
	}
	return "flotilla explain " + hint.Parse(p.Object).Args() + " says more"
}

// strangers returns the problems of a policy that names clusters that do not exist.
func (in *Input) strangers(p policyv1alpha1.Policy) problems {
	if p == nil {
		return nil
	}
	return in.unknown(*refOf(propagation.RefOf(p)), p, propagation.NamedClusters(p.PropagationSpec()), propagation.ExcludedClusters(p.PropagationSpec()))
}

// strangersOfOverrides is strangers for the overrides that select the template,
// and for the template if it is an override itself.
func (in *Input) strangersOfOverrides() problems {
	var out problems
	if own := in.asOverride(); own != nil {
		out = in.unknown(refOfOverride(own), own, override.NamedClusters(own), override.ExcludedClusters(own))
	}
	for _, o := range override.Sorted(in.Overrides, selector.ResourceOf(in.Template)) {
		out = append(out, in.unknown(refOfOverride(o), o, override.NamedClusters(o), override.ExcludedClusters(o))...)
	}
	return out
}

// asOverride decodes the template as the override that it is; nil for other
// kinds, and for one that cannot be decoded.
func (in *Input) asOverride() policyv1alpha1.Override {
	var o policyv1alpha1.Override
	switch in.Template.GroupVersionKind() {
	case policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ResourceKindOverridePolicy):
		o = &policyv1alpha1.OverridePolicy{}
	case policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ResourceKindClusterOverridePolicy):
		o = &policyv1alpha1.ClusterOverridePolicy{}
	default:
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Template.Object, o); err != nil {
		return nil
	}
	return o
}

// unknown returns a problem for each cluster that a policy names and that does
// not exist, and for each that it excludes and that looks mistyped.
func (in *Input) unknown(ref Ref, of metav1.Object, names, excluded []string) problems {
	if in.blind(UnreadClusters) {
		return nil
	}
	fleet := make([]string, len(in.Clusters))
	for i, c := range in.Clusters {
		fleet[i] = c.Name
	}
	var out problems
	for _, remark := range propagation.Remarks(of, names, excluded, fleet) {
		out.add(Problem{Reason: ReasonUnknownCluster, Message: ref.String() + ": " + remark, Next: "correct the name, or join the cluster: flotilla get clusters"})
	}
	return out
}
