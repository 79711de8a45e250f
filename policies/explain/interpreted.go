package explain

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// strayed returns a problem if clusters have drifted from what was sent and are not corrected.
func strayed(in Input) problems {
	if in.Binding == nil {
		return nil
	}
	c := apimeta.FindStatusCondition(in.Binding.BindingStatus().Conditions, workv1alpha2.Drifted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	next := "change it back there, or " + rollup.PutBack(plan.SuspendedSomewhere(in.Binding.BindingSpec()))
	return problems{{Reason: ReasonDrifted, Message: "clusters hold something else than it says, and it is left so: " + c.Message, Next: next}}
}

// misread returns a problem if the control plane cannot interpret the template, or its objects in clusters. The
// problem is taken from the binding's conditions or, where there is no binding, from the policy's status. title
// names the template.
func misread(in Input, d propagation.Decision, title string) problems {
	const next = "see that the webhook answers that it names, or correct the customization; it is tried again until it works"
	if in.Binding != nil {
		c := apimeta.FindStatusCondition(in.Binding.BindingStatus().Conditions, workv1alpha2.Interpreted)
		if c != nil && c.Status == metav1.ConditionFalse {
			return problems{{Reason: ReasonNotInterpreted, Message: c.Message, Next: next}}
		}
		return nil
	}
	if d.Outcome != propagation.Carried || d.Policy == nil {
		return nil
	}
	if last := d.Policy.PropagationStatus().LastProblem; last != nil && last.Object == title {
		return problems{{Reason: ReasonPolicyProblem, Message: "it was not taken up: " + last.Message, Next: "put right what it says; it is tried again until it works"}}
	}
	return nil
}
