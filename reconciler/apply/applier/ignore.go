package applier

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa/jsondiff"
)

// IgnoreRules returns the fields whose changes by others a Kustomization leaves alone.
func IgnoreRules(ks *kustomizev1.Kustomization) []jsondiff.IgnoreRule {
	var rules []jsondiff.IgnoreRule
	for _, rule := range ks.Spec.Ignore {
		out := jsondiff.IgnoreRule{Paths: rule.Paths}
		if t := rule.Target; t != nil {
			out.Selector = &jsondiff.Selector{
				Group: t.Group, Version: t.Version, Kind: t.Kind, Name: t.Name, Namespace: t.Namespace,
				AnnotationSelector: t.AnnotationSelector, LabelSelector: t.LabelSelector,
			}
		}
		rules = append(rules, out)
	}
	return rules
}
