package propagation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func TestWithdrawn(t *testing.T) {
	var fleet []*clusterv1alpha1.Cluster
	for _, name := range []string{"west", "east", "edge"} {
		fleet = append(fleet, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"at": name}}})
	}
	of := func(a *policyv1alpha1.ClusterAffinity) *policyv1alpha1.PropagationSpec {
		return &policyv1alpha1.PropagationSpec{Placement: policyv1alpha1.Placement{ClusterAffinity: a}}
	}
	named := func(names ...string) *policyv1alpha1.PropagationSpec {
		return of(&policyv1alpha1.ClusterAffinity{ClusterNames: names})
	}
	labelled := func(at string) *policyv1alpha1.PropagationSpec {
		return of(&policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"at": at}}})
	}
	terms := func(lists ...[]string) *policyv1alpha1.PropagationSpec {
		spec := of(nil)
		for _, names := range lists {
			spec.Placement.ClusterAffinities = append(spec.Placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: names}})
		}
		return spec
	}
	const typo, none = "clusterNames names wst, which does not exist (did you mean west?)", "it means no cluster of the fleet any more"
	for name, tc := range map[string]struct {
		before, after *policyv1alpha1.PropagationSpec
		want          propagation.Withdrawal
	}{
		"nothing changes":                              {before: named("east"), after: named("east")},
		"one more":                                     {before: named("east"), after: named("east", "west")},
		"one less":                                     {before: named("east", "west"), after: named("east"), want: propagation.Withdrawal{Clusters: []string{"west"}}},
		"another one":                                  {before: named("east"), after: named("west"), want: propagation.Withdrawal{Clusters: []string{"east"}}},
		"a name is mistyped":                           {before: named("east", "west"), after: named("east", "wst"), want: propagation.Withdrawal{Clusters: []string{"west"}, Mistake: typo}},
		"the only name is mistyped":                    {before: named("west"), after: named("wst"), want: propagation.Withdrawal{Clusters: []string{"west"}, Mistake: typo}},
		"all are named, one mistyped":                  {before: of(nil), after: named("east", "edge", "wst"), want: propagation.Withdrawal{Clusters: []string{"west"}, Mistake: typo}},
		"a cluster is added that is yet to join":       {before: named("east"), after: named("east", "north")},
		"one that is yet to join was there before":     {before: named("east", "west", "north"), after: named("east", "north"), want: propagation.Withdrawal{Clusters: []string{"west"}}},
		"labels that no cluster has":                   {before: labelled("east"), after: labelled("esat"), want: propagation.Withdrawal{Clusters: []string{"east"}, Mistake: none}},
		"all are excluded":                             {before: of(nil), after: of(&policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"east", "west", "edge"}}), want: propagation.Withdrawal{Clusters: []string{"east", "edge", "west"}, Mistake: none}},
		"a name of a later term is mistyped":           {before: terms([]string{"east"}, []string{"west"}), after: terms([]string{"east"}, []string{"wst"}), want: propagation.Withdrawal{Clusters: []string{"west"}, Mistake: typo}},
		"a term takes the place of what another meant": {before: terms([]string{"east"}, []string{"west"}), after: terms([]string{"west"}, []string{"east"})},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, propagation.Withdrawn(tc.before, tc.after, fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
