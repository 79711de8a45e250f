package selector_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// indexed are selectors of Deployments and the keys that they are found by.
func indexed() map[string]struct {
	selector policyv1alpha1.ResourceSelector
	want     []string
} {
	deployments := func(name string, s *metav1.LabelSelector) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name, LabelSelector: s}
	}
	expressions := func(all ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: all}
	}
	in := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "api"}}
	notIn := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"}}
	exists := metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpExists}
	lacks := metav1.LabelSelectorRequirement{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist}
	const kind = "apps/v1 Deployment"
	return map[string]struct {
		selector policyv1alpha1.ResourceSelector
		want     []string
	}{
		"a name":                                     {deployments("web", nil), []string{kind + " name web"}},
		"a name beats labels":                        {deployments("web", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}), []string{kind + " name web"}},
		"all of the kind":                            {deployments("", nil), []string{kind}},
		"an empty label selector":                    {deployments("", &metav1.LabelSelector{}), []string{kind}},
		"one label":                                  {deployments("", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}), []string{kind + " label app=web"}},
		"of several labels the first key":            {deployments("", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold", "app": "web"}}), []string{kind + " label app=web"}},
		"a label beats expressions":                  {deployments("", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{exists}}), []string{kind + " label app=web"}},
		"a label that exists":                        {deployments("", expressions(exists)), []string{kind + " has tier"}},
		"any of some values":                         {deployments("", expressions(in)), []string{kind + " label app=web", kind + " label app=api"}},
		"the first expression that finds any":        {deployments("", expressions(notIn, lacks, in, exists)), []string{kind + " label app=web", kind + " label app=api"}},
		"expressions that only rule out":             {deployments("", expressions(notIn, lacks)), []string{kind}},
		"a label with no values to choose from":      {deployments("", expressions(metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn})), []string{kind}},
		"the namespace does not count":               {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop"}, []string{kind}},
		"another kind has keys of its own":           {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Pod", Name: "web"}, []string{"v1 Pod name web"}},
		"another version, too, has keys apart":       {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"}, []string{"apps/v1beta1 Deployment"}},
		"an operator that nobody knows narrows none": {deployments("", expressions(metav1.LabelSelectorRequirement{Key: "app", Operator: "Near"})), []string{kind}},
	}
}

// TestIndexKeys: a selector is found by the narrowest thing that each resource that
// it means must have.
func TestIndexKeys(t *testing.T) {
	for name, tc := range indexed() {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, selector.IndexKeys(&tc.selector)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLookupKeys: a resource asks by its kind, its name, and by each of its labels
// with and without the value.
func TestLookupKeys(t *testing.T) {
	cases := map[string]struct {
		resource selector.Resource
		want     []string
	}{
		"without labels": {
			selector.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web"},
			[]string{"v1 Pod", "v1 Pod name web"},
		},
		"with labels": {
			selector.Resource{APIVersion: "v1", Kind: "Pod", Name: "web", Labels: map[string]string{"app": "web", "tier": ""}},
			[]string{"v1 Pod", "v1 Pod has app", "v1 Pod has tier", "v1 Pod label app=web", "v1 Pod label tier=", "v1 Pod name web"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// Labels come in any order.
			if diff := cmp.Diff(tc.want, slices.Sorted(slices.Values(selector.LookupKeys(tc.resource)))); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMatchesAreFound: an index leaves out no selector that means the resource.
func TestMatchesAreFound(t *testing.T) {
	resources := map[string]selector.Resource{
		"without labels": {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		"of one label":   {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "api", Labels: map[string]string{"app": "api"}},
		"of more labels": {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "bank", Name: "web", Labels: map[string]string{"app": "web", "tier": "gold", "old": ""}},
		"of a kind":      {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}},
		"of a version":   {APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "shop", Name: "web"},
	}
	meant := map[string]int{}
	for of, r := range resources {
		lookup := selector.LookupKeys(r)
		for name, tc := range indexed() {
			if selector.Match(tc.selector, r) == selector.None {
				continue
			}
			meant[of]++
			if !slices.ContainsFunc(selector.IndexKeys(&tc.selector), func(key string) bool { return slices.Contains(lookup, key) }) {
				t.Errorf("%q means the resource %s, and is not found", name, of)
			}
		}
	}
	// Without matches there would be nothing to find.
	want := map[string]int{"without labels": 6, "of one label": 5, "of more labels": 9, "of a kind": 1, "of a version": 1}
	if diff := cmp.Diff(want, meant); diff != "" {
		t.Errorf("selectors that mean a resource (-want +got):\n%s", diff)
	}
}
