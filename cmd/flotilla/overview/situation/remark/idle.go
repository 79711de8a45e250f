package remark

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Nothing begins what a policy that carries nothing says in its condition.
const Nothing = "it carries nothing"

// CarriesNothing is the message about it.
const CarriesNothing = Nothing + ": there is no object that its selectors mean, or another policy carries it"

// IsIdle reports whether a policy that is ready says that it carries nothing, or has counted nothing although it is there for long.
func IsIdle(p policyv1alpha1.Policy, long bool) bool {
	status := p.PropagationStatus()
	ready := meta.FindStatusCondition(status.Conditions, policyv1alpha1.PolicyReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && status.ObservedGeneration == p.GetGeneration() && status.Templates == 0 &&
		(long || strings.HasPrefix(ready.Message, Nothing))
}

// IdleNext is what to do about a policy, of that kind, that carries nothing. One that a command has made for an object
// outlives it: its name says so.
func IdleNext(p policyv1alpha1.Policy, kind string) string {
	if of := p.PropagationSpec().ResourceSelectors; len(of) == 1 && of[0].Name != "" {
		gvk := schema.FromAPIVersionAndKind(of[0].APIVersion, of[0].Kind)
		namespace := p.GetNamespace() // objects of a namespace are its policies'
		if name := p.GetName(); name == workv1alpha2.PolicyName(gvk, namespace, of[0].Name) || name == workv1alpha2.FormerPolicyName(gvk, namespace, of[0].Name) {
			return fmt.Sprintf("a command made it for %s %s: if that is gone for good, flotilla delete %s %s%s", of[0].Kind, of[0].Name, strings.ToLower(kind), name, inNamespace(namespace))
		}
	}
	return "compare its resourceSelectors with what there is; flotilla explain KIND/NAME says why an object is not carried"
}
