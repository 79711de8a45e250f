package propagation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func TestNear(t *testing.T) {
	web := selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "frontend", Labels: map[string]string{"team": "payments", "tier": "web", "zone": "a1"}}
	numbered := selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop-1", Name: "web-1"}
	labels := func(all map[string]string, expressions ...metav1.LabelSelectorRequirement) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: all, MatchExpressions: expressions}}
	}
	named := func(kind, namespace, name string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: kind, Namespace: namespace, Name: name}
	}
	in := func(values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	type want struct {
		Mistakes int
		Near     bool
	}
	cases := map[string]struct {
		selector policyv1alpha1.ResourceSelector
		of       *selector.Resource // web if nil
		want     want
	}{
		"it means the resource":                {named("Deployment", "shop", "frontend"), nil, want{}},
		"another number in its name":           {named("Deployment", "", "web-2"), &numbered, want{}},
		"another number in its namespace":      {named("Deployment", "shop-2", "web-1"), &numbered, want{}},
		"and a letter is missing":              {named("Deployment", "", "wb-1"), &numbered, want{1, true}},
		"a letter of the name is missing":      {named("Deployment", "", "fronted"), nil, want{1, true}},
		"and one of the namespace is wrong":    {named("Deployment", "shob", "fronted"), nil, want{2, true}},
		"it is about another name":             {named("Deployment", "shop", "checkout"), nil, want{}},
		"it is about another namespace":        {named("Deployment", "bank", ""), nil, want{}},
		"it is about another kind":             {named("StatefulSet", "shop", "fronted"), nil, want{}},
		"a letter of the kind is missing":      {named("Deploymnt", "shop", "frontend"), nil, want{1, true}},
		"it is about all of a kind like it":    {named("Deploymnt", "shop", ""), nil, want{}},
		"it is about another version":          {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"}, nil, want{1, true}},
		"a name of one letter is another one":  {named("Deployment", "shop", "f"), nil, want{}},
		"a label has another number":           {labels(map[string]string{"zone": "a2"}), nil, want{}},
		"a label has another value":            {labels(map[string]string{"team": "paymetns", "tier": "web"}), nil, want{1, true}},
		"a label has another key":              {labels(map[string]string{"taem": "payments"}), nil, want{1, true}},
		"both":                                 {labels(map[string]string{"taem": "payments", "tier": "wep"}), nil, want{2, true}},
		"a label is not there":                 {labels(map[string]string{"zone": "a"}), nil, want{}},
		"a label has something else":           {labels(map[string]string{"team": "ledger"}), nil, want{}},
		"one of the values is near":            {labels(nil, in("ledger", "payment")), nil, want{1, true}},
		"none of the values is":                {labels(nil, in("ledger")), nil, want{}},
		"what is asked for besides is not so":  {labels(map[string]string{"team": "paymetns"}, metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}), nil, want{}},
		"what is asked for besides is so":      {labels(map[string]string{"team": "paymetns"}, metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpExists}), nil, want{1, true}},
		"what is asked for cannot be read":     {labels(nil, metav1.LabelSelectorRequirement{Key: "tier", Operator: "Like"}), nil, want{}},
		"the nearest of several labels counts": {labels(map[string]string{"tiar": "web"}), nil, want{1, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			of := web
			if tc.of != nil {
				of = *tc.of
			}
			got.Mistakes, got.Near = Near(tc.selector, of)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
