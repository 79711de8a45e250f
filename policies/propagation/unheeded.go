package propagation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Unheeded returns a text about a policy that asks for a template and is not
// followed, and why; empty if there is none. owner is the policy that carries the
// template, and binding the template's; nil if it has none.
//
// It is one of competing that would carry the template if owner had not claimed
// it first; this is contested, as it lasts until somebody acts. If owner is not
// one of competing, the names of the policies do not count. Or it is owner
// itself, if that is Lazy, has changed, and waits for the template to change as
// well.
func Unheeded(template *unstructured.Unstructured, owner policyv1alpha1.Policy, binding workv1alpha2.Binding, competing []policyv1alpha1.Policy) (why string, contested bool, err error) {
	r := selector.ResourceOf(template)
	current, ok := rankOf(owner, r)
	if !ok {
		return "", false, nil // owner no longer selects the template, and is about to lose it
	}
	is := func(p policyv1alpha1.Policy) bool { return RefOf(p) == RefOf(owner) }
	apart := !slices.ContainsFunc(competing, is)
	c := Case{Candidates: competing}
	better := func(p policyv1alpha1.Policy) bool {
		rk, _ := rankOf(p, r)
		if apart {
			// The two were written without knowledge of each other, so that their
			// names must not decide.
			rk.name = current.name
			return rk.compare(current) >= 0 && !beats(p, owner)
		}
		return !is(p) && rk.compare(current) > 0 && !beats(p, owner)
	}
	if p, ok := c.best(r, better); ok {
		return fmt.Sprintf("by %s, as %s keeps it: delete that, or have the first preempt it", Title(p), Title(owner)), true, nil
	}
	act, err := Activate(template, owner, binding)
	if err != nil || !act.Waits || binding != nil && follows(template, owner, binding.BindingSpec()) {
		return "", false, err
	}
	return fmt.Sprintf("by %s before its next change, as that is Lazy", Title(owner)), false, nil
}

// follows reports whether a binding is as a policy wants it, not counting the
// version of the template.
func follows(template *unstructured.Unstructured, p policyv1alpha1.Policy, spec *workv1alpha2.ResourceBindingSpec) bool {
	as := Template{Object: template, Replicas: spec.Replicas, Requirements: spec.ReplicaRequirements, Components: spec.Components}
	if spec.SchedulePriority != nil {
		as.Priority = &spec.SchedulePriority.Priority
	}
	asked := BindingSpec(as, p, spec)
	asked.Resource = spec.Resource
	return equality.Semantic.DeepEqual(&asked, spec)
}
