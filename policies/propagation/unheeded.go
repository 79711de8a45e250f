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

// Unheeded says, of a template that holder carries, by which policy it is not taken up although that asks for it, and why;
// empty for none. It is one of rivals that would carry it, had holder not claimed it before, where holder is one of them; else
// also one that only its name puts behind holder. Or it is holder itself, if it is Lazy, has changed, and waits for the
// template to change, too. Binding is the template's, nil if it has none.
func Unheeded(template *unstructured.Unstructured, holder policyv1alpha1.Policy, binding workv1alpha2.Binding, rivals []policyv1alpha1.Policy) (string, error) {
	r := selector.ResourceOf(template)
	held, ok := rankOf(holder, r)
	if !ok {
		return "", nil // it is about to lose it
	}
	is := func(p policyv1alpha1.Policy) bool { return RefOf(p) == RefOf(holder) }
	apart := !slices.ContainsFunc(rivals, is)
	c := Case{Candidates: rivals}
	better := func(p policyv1alpha1.Policy) bool {
		rk, _ := rankOf(p, r)
		if apart {
			rk.name = held.name // whoever wrote one did not know of the other
			return rk.compare(held) >= 0 && !Beats(p, holder)
		}
		return !is(p) && rk.compare(held) > 0 && !Beats(p, holder)
	}
	if p, ok := c.best(r, better); ok {
		return fmt.Sprintf("by %s, as %s keeps it: delete that, or have the first preempt it", Title(p), Title(holder)), nil
	}
	act, err := Activate(template, holder, binding)
	if err != nil || !act.Waits || binding != nil && follows(template, holder, binding.BindingSpec()) {
		return "", err
	}
	return fmt.Sprintf("by %s before its next change, as that is Lazy", Title(holder)), nil
}

// follows reports whether a binding is as a policy asks for, but for the template.
func follows(template *unstructured.Unstructured, p policyv1alpha1.Policy, spec *workv1alpha2.ResourceBindingSpec) bool {
	as := Template{Object: template, Replicas: spec.Replicas, Requirements: spec.ReplicaRequirements, Components: spec.Components}
	if spec.SchedulePriority != nil {
		as.Priority = &spec.SchedulePriority.Priority
	}
	asked := BindingSpec(as, p, spec)
	asked.Resource = spec.Resource
	return equality.Semantic.DeepEqual(&asked, spec)
}
