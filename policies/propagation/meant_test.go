package propagation_test

import (
	"fmt"
	"testing"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// TestMisnamed: of a policy that carries nothing it is told which object its selectors may mean.
func TestMisnamed(t *testing.T) {
	of := func(namespace string, names ...string) (out []policyv1alpha1.ResourceSelector) {
		for _, name := range names {
			out = append(out, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name})
		}
		return out
	}
	many := make([]string, 5001)
	for i := range many {
		many[i] = fmt.Sprintf("app%d", i)
	}
	for name, tc := range map[string]struct {
		selectors []policyv1alpha1.ResourceSelector
		there     []string
		want      string
	}{
		"a letter is wrong":                {of("", "frontent"), []string{"checkout", "frontend"}, "it names Deployment frontent (did you mean Deployment shop/frontend?)"},
		"the selector has a namespace":     {of("shop", "frontent"), []string{"frontend"}, "it names Deployment shop/frontent (did you mean Deployment shop/frontend?)"},
		"the namespace is nearly right":    {of("shp", "frontend"), []string{"frontend"}, "it names Deployment shp/frontend (did you mean Deployment shop/frontend?)"},
		"the nearest is meant":             {of("", "frontent"), []string{"frntend", "frontend"}, "it names Deployment frontent (did you mean Deployment shop/frontend?)"},
		"two are as near":                  {of("", "frontent"), []string{"frontenx", "frontend"}, "it names Deployment frontent (did you mean Deployment shop/frontend?)"},
		"the nearest of several selectors": {of("", "chkot", "frontent"), []string{"checkout", "frontend"}, "it names Deployment frontent (did you mean Deployment shop/frontend?)"},
		"another number is another one":    {of("", "web-1"), []string{"web-2"}, ""},
		"none is near":                     {of("", "cart"), []string{"frontend"}, ""},
		"there is what it names":           {of("", "frontend"), []string{"frontends", "frontend", "frontendx"}, ""},
		"it names none":                    {of("", ""), []string{"frontend"}, ""},
		"there are too many":               {of("", "frontent"), append(many, "frontend"), ""},
		"there is nothing":                 {of("", "frontent"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := propagation.Misnamed(tc.selectors, func(of policyv1alpha1.ResourceSelector, yield func(selector.Resource) bool) {
				for _, name := range tc.there {
					if !yield(selector.Resource{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: "shop", Name: name}) {
						return
					}
				}
			})
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
