package riskyedit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
)

func TestOverride(t *testing.T) {
	var fleet []*clusterv1alpha1.Cluster
	for _, name := range []string{"west", "east", "edge"} {
		fleet = append(fleet, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	type rule = policyv1alpha1.RuleWithCluster
	in := func(tag string, clusters ...string) rule {
		return rule{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
			Overriders:    policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: "Tag", Operator: "replace", Value: tag}}},
		}
	}
	all := func(tag string) rule { return rule{Overriders: in(tag).Overriders} }
	of := func(rules ...rule) *policyv1alpha1.OverrideSpec {
		return &policyv1alpha1.OverrideSpec{OverrideRules: rules}
	}
	const typo = "clusterNames names wets, which does not exist (did you mean west?)"
	for name, tc := range map[string]struct {
		before, after *policyv1alpha1.OverrideSpec
		want          riskyedit.Loss
	}{
		"nothing changes":                  {of(in("1", "west")), of(in("1", "west")), riskyedit.Loss{}},
		"a value changes":                  {of(in("1", "west")), of(in("2", "west")), riskyedit.Loss{}},
		"one cluster less":                 {of(in("1", "west", "east")), of(in("1", "east")), riskyedit.Loss{Clusters: []string{"west"}}},
		"a name is mistyped":               {of(in("1", "west")), of(in("1", "wets")), riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true}},
		"a name and a value":               {of(in("1", "west")), of(in("2", "wets")), riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true}},
		"a name beside what is for all":    {of(all("0"), in("1", "west")), of(all("0"), in("1", "wets")), riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true}},
		"rules that change places":         {of(in("1", "west"), in("2", "east")), of(in("2", "east"), in("1", "west")), riskyedit.Loss{}},
		"a rule goes":                      {of(in("1", "west"), in("2", "east")), of(in("2", "east")), riskyedit.Loss{}},
		"a rule is for one instead of all": {of(all("1")), of(in("1", "wets")), riskyedit.Loss{Clusters: []string{"east", "edge", "west"}, Mistake: typo, Unknown: true}},
		"as it was written once": {
			&policyv1alpha1.OverrideSpec{TargetCluster: in("1", "west").TargetCluster, Overriders: in("1").Overriders}, of(in("1", "wets")),
			riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, riskyedit.Override(tc.before, tc.after, fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDoes(t *testing.T) {
	fleet := []*clusterv1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "west"}}, {ObjectMeta: metav1.ObjectMeta{Name: "east"}}}
	of := func(tag string, clusters ...string) *policyv1alpha1.OverrideSpec {
		rule := policyv1alpha1.RuleWithCluster{Overriders: policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: "Tag", Operator: "replace", Value: tag}}}}
		if len(clusters) > 0 {
			rule.TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
		}
		return &policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{rule}}
	}
	for name, tc := range map[string]struct {
		spec, other *policyv1alpha1.OverrideSpec
		in          []string
		want        bool
	}{
		"the same":                           {of("1", "west"), of("1", "west"), []string{"west"}, true},
		"for all instead of one":             {of("1"), of("1", "west"), []string{"west"}, true},
		"for one instead of all":             {of("1", "west"), of("1"), []string{"west", "east"}, false},
		"another value":                      {of("2", "west"), of("1", "west"), []string{"west"}, false},
		"elsewhere":                          {of("1", "east"), of("1", "west"), []string{"west"}, false},
		"a cluster that the other is not in": {of("1"), of("1", "west"), []string{"east"}, false},
		"a cluster that there is not":        {of("1"), of("1"), []string{"north"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := riskyedit.Does(tc.spec, tc.other, tc.in, fleet); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
