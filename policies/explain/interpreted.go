package explain

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// strayed says that clusters hold something else than was sent, and that it is left so.
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

// misread says what the control plane does not understand of the template, or of its
// objects in clusters: as its binding says or, where it has none, its policy.
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
