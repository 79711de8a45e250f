package propagation_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// BenchmarkMatch measures how long it takes to find the one of 1,000 policies
// that carries a template, for 10,000 templates. One operation is one template.
func BenchmarkMatch(b *testing.B) {
	shapes := map[string]func(i int) policyv1alpha1.ResourceSelector{
		"by-name": func(i int) policyv1alpha1.ResourceSelector {
			return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprint("app-", i)}
		},
		"by-label": func(i int) policyv1alpha1.ResourceSelector {
			return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"app": fmt.Sprint("app-", i)}}}
		},
		"by-expression": func(i int) policyv1alpha1.ResourceSelector {
			return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprint("app-", i)}}}}}
		},
	}
	for name, selectorOf := range shapes {
		b.Run(name, func(b *testing.B) {
			var policies []policyv1alpha1.Policy
			for i := range 1000 {
				policies = append(policies, policy("shop", fmt.Sprint("p", i), selectorOf(i)))
			}
			directory := propagation.NewDirectory(policies, nil, propagation.SkipRules{})
			templates := make([]*unstructured.Unstructured, 10_000)
			for i := range templates {
				templates[i] = web()
				templates[i].SetName(fmt.Sprint("app-", i))
				templates[i].SetLabels(map[string]string{"app": fmt.Sprint("app-", i%1000), "tier": "front", "team": "a"})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				propagation.Decide(directory.Case(templates[i%len(templates)]))
			}
		})
	}
}
