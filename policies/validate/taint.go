package validate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// TaintPolicy says what is wrong with p. Taints that evict are refused unless
// allowNoExecute.
func TaintPolicy(p *policyv1alpha1.ClusterTaintPolicy, allowNoExecute bool) (field.ErrorList, []string) {
	spec, path := &p.Spec, field.NewPath("spec")
	warnings := unwise(affinity(spec.TargetClusters, path.Child("targetClusters")), "so no cluster may be meant")
	errs, more := conditions(spec.AddOnConditions, path.Child("addOnConditions"))
	warnings = append(warnings, more...)
	wrong, more := conditions(spec.RemoveOnConditions, path.Child("removeOnConditions"))
	errs, warnings = append(errs, wrong...), append(warnings, more...)
	if len(spec.Taints) == 0 {
		errs = append(errs, field.Required(path.Child("taints"), "a policy without taints does nothing"))
	}
	type unique struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[unique]bool{}
	for i, t := range spec.Taints {
		at := path.Child("taints").Index(i)
		warnings = append(warnings, unwise(syntax.LabelName(t.Key, at.Child("key")), neverSet)...)
		warnings = append(warnings, unwise(syntax.LabelValue(t.Value, at.Child("value")), neverSet)...)
		switch t.Effect {
		case corev1.TaintEffectNoSchedule:
		case corev1.TaintEffectNoExecute:
			if !allowNoExecute {
				errs = append(errs, field.Forbidden(at.Child("effect"),
					"a taint with effect NoExecute evicts workloads and is not allowed, unless the control plane is started with --allow-no-execute-taint-policy"))
			}
		default:
			warnings = append(warnings, syntax.Advise(at.Child("effect"), "clusters do not take %s, so the taint is never set: use NoSchedule", t.Effect))
		}
		u := unique{t.Key, t.Effect}
		if seen[u] {
			errs = append(errs, field.Duplicate(at, fmt.Sprintf("%s:%s", t.Key, t.Effect)))
		}
		seen[u] = true
	}
	if len(spec.AddOnConditions) == 0 && len(spec.RemoveOnConditions) == 0 {
		warnings = append(warnings, syntax.Advise(path, "without addOnConditions the taints are never set: add one"))
	}
	return errs, append(warnings, affinityAdvice(spec.TargetClusters, path.Child("targetClusters"))...)
}

// neverSet is what comes of a taint that no cluster takes.
const neverSet = "so the taint is never set: correct it"

// unwise makes warnings of what Karmada takes, and what has no effect.
func unwise(errs field.ErrorList, consequence string) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error()+", "+consequence)
	}
	return out
}

func conditions(cs []policyv1alpha1.MatchCondition, path *field.Path) (field.ErrorList, []string) {
	var errs field.ErrorList
	var warnings []string
	for i, c := range cs {
		at := path.Index(i)
		if c.ConditionType == "" {
			warnings = append(warnings, syntax.Advise(at.Child("conditionType"), "is empty, so no condition is meant: name one of clusters, such as Ready"))
		}
		known := []policyv1alpha1.MatchConditionOperator{policyv1alpha1.MatchConditionOpIn, policyv1alpha1.MatchConditionOpNotIn}
		if !slices.Contains(known, c.Operator) {
			errs = append(errs, field.NotSupported(at.Child("operator"), c.Operator, known))
		}
		if len(c.StatusValues) == 0 {
			warnings = append(warnings, syntax.Advise(at.Child("statusValues"), "is empty, so the condition says nothing: list True, False or Unknown"))
		}
		for j, v := range c.StatusValues {
			if !slices.Contains([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}, v) {
				warnings = append(warnings, syntax.Advise(at.Child("statusValues").Index(j), "no condition is ever %q: use True, False or Unknown", v))
			}
		}
	}
	return errs, warnings
}
