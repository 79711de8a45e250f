package validate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// overrideAdvice lists what is valid in an override and yet changes nothing, or
// will fail.
func overrideAdvice(spec *policyv1alpha1.OverrideSpec, path *field.Path) []string {
	out := selectorAdvice(spec.ResourceSelectors, path.Child("resourceSelectors"), false)
	if spec.TargetCluster == nil && emptyOverriders(&spec.Overriders) && len(spec.OverrideRules) == 0 {
		return append(out, syntax.Advise(path, "there are no overrideRules, so nothing is changed: add one"))
	}
	out = append(out, affinityAdvice(spec.TargetCluster, path.Child("targetCluster"))...)
	out = append(out, overriderAdvice(&spec.Overriders, spec.ResourceSelectors, path.Child("overriders"))...)
	rules := seen{}
	for i := range spec.OverrideRules {
		rule, at := &spec.OverrideRules[i], path.Child("overrideRules").Index(i)
		out = append(out, affinityAdvice(rule.TargetCluster, at.Child("targetCluster"))...)
		if emptyOverriders(&rule.Overriders) {
			out = append(out, syntax.Advise(at.Child("overriders"), "is empty, so the rule changes nothing: add an overrider, or remove the rule"))
			continue
		}
		out = append(out, overriderAdvice(&rule.Overriders, spec.ResourceSelectors, at.Child("overriders"))...)
		if n := rules.before(i, rule); n < i {
			out = append(out, syntax.Advise(at, "says the same as overrideRules[%d]: remove one of them", n))
		}
	}
	return out
}

// identityPaths lead to what an object is found by, which never changes.
var identityPaths = []string{"/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"}

func overriderAdvice(o *policyv1alpha1.Overriders, selectors []policyv1alpha1.ResourceSelector, path *field.Path) []string {
	var out []string
	stranger, without := kindWithoutContainers(selectors)
	for i := range o.ImageOverrider {
		image, at := &o.ImageOverrider[i], path.Child("imageOverrider").Index(i)
		if image.Predicate == nil && without {
			out = append(out, syntax.Advise(at.Child("predicate"), "%s has no containers at a place that is known, so the override fails: set predicate.path", stranger))
		}
		switch {
		case image.Operator == policyv1alpha1.OverriderOpRemove && image.Component == policyv1alpha1.Repository:
			out = append(out, syntax.Advise(at.Child("component"), "an image without a repository is none, so the override fails: use replace"))
		case image.Operator != policyv1alpha1.OverriderOpRemove && image.Value == "":
			out = append(out, syntax.Advise(at.Child("value"), "is empty: set it, or use remove"))
		}
	}
	for i := range o.Plaintext {
		p, at := &o.Plaintext[i], path.Child("plaintext").Index(i)
		if slices.Contains(identityPaths, p.Path) {
			out = append(out, syntax.Advise(at.Child("path"), "an override must not change what the object is found by, so it fails: use another path"))
		}
		if unsent := plan.Unsent(strings.Split(strings.TrimPrefix(p.Path, "/"), "/")); unsent != "" {
			fails := ""
			if p.Operator == policyv1alpha1.OverriderOpRemove {
				fails = ", and fails where there is none"
			}
			out = append(out, syntax.Advise(at.Child("path"), "has no effect%s: no cluster is sent %s in any case; remove it", fails, unsent))
		}
		if p.Operator != policyv1alpha1.OverriderOpRemove && len(p.Value.Raw) == 0 {
			out = append(out, syntax.Advise(at.Child("value"), "is missing, so null is written: set it, or use remove"))
		}
	}
	if without && len(o.CommandOverrider) > 0 {
		out = append(out, syntax.Advise(path.Child("commandOverrider"), "%s has no containers at a place that is known, so the override fails: use plaintext", stranger))
	}
	if without && len(o.ArgsOverrider) > 0 {
		out = append(out, syntax.Advise(path.Child("argsOverrider"), "%s has no containers at a place that is known, so the override fails: use plaintext", stranger))
	}
	return out
}

// withContainers are the kinds whose containers are found without being named
// where they are.
var withContainers = []string{"Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job"}

// kindWithoutContainers returns a selected kind whose containers are not found.
func kindWithoutContainers(selectors []policyv1alpha1.ResourceSelector) (string, bool) {
	for i := range selectors {
		if !slices.Contains(withContainers, selectors[i].Kind) {
			return selectors[i].Kind, true
		}
	}
	return "", false
}
