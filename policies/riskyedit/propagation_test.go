package riskyedit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
)

func TestPropagation(t *testing.T) {
	var fleet []*clusterv1alpha1.Cluster
	for _, name := range []string{"west", "east", "edge"} {
		fleet = append(fleet, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"at": name}}})
	}
	fleet[2].Spec.Region = "eu"
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
	among := func(at ...string) *policyv1alpha1.PropagationSpec {
		return of(&policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "at", Operator: metav1.LabelSelectorOpIn, Values: at}},
		}})
	}
	labels := func(terms ...string) *policyv1alpha1.PropagationSpec {
		spec := of(nil)
		for _, at := range terms {
			spec.Placement.ClusterAffinities = append(spec.Placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: *labelled(at).Placement.ClusterAffinity})
		}
		return spec
	}
	regions := func(region string) *policyv1alpha1.PropagationSpec {
		return of(&policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "region", Operator: corev1.NodeSelectorOpIn, Values: []string{region}}},
		}})
	}
	weights := func(names ...string) *policyv1alpha1.PropagationSpec {
		spec := of(nil)
		preference := &policyv1alpha1.ClusterPreferences{}
		for _, name := range names {
			preference.StaticWeightList = append(preference.StaticWeightList, policyv1alpha1.StaticClusterWeight{TargetCluster: *named(name).Placement.ClusterAffinity, Weight: 1})
		}
		spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted, WeightPreference: preference,
		}
		return spec
	}
	const label = "labelSelector asks for at=esat, which no cluster has (did you mean east?)"
	const typo, none = "clusterNames names wst, which does not exist (did you mean west?)", "it means no cluster of the fleet any more"
	for name, tc := range map[string]struct {
		before, after *policyv1alpha1.PropagationSpec
		want          riskyedit.Loss
	}{
		"nothing changes":                          {before: named("east"), after: named("east")},
		"one more":                                 {before: named("east"), after: named("east", "west")},
		"one less":                                 {before: named("east", "west"), after: named("east"), want: riskyedit.Loss{Clusters: []string{"west"}}},
		"another one":                              {before: named("east"), after: named("west"), want: riskyedit.Loss{Clusters: []string{"east"}}},
		"a name is mistyped":                       {before: named("east", "west"), after: named("east", "wst"), want: riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true}},
		"the only name is mistyped":                {before: named("west"), after: named("wst"), want: riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true}},
		"all are named, one mistyped":              {before: of(nil), after: named("east", "edge", "wst"), want: riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true}},
		"a cluster is added that is yet to join":   {before: named("east"), after: named("east", "north")},
		"one that is yet to join was there before": {before: named("east", "west", "north"), after: named("east", "north"), want: riskyedit.Loss{Clusters: []string{"west"}}},
		"labels that no cluster has":               {before: labelled("east"), after: labelled("esat"), want: riskyedit.Loss{Clusters: []string{"east"}, Mistake: label, Unknown: true}},
		"one of several labels is mistyped":        {before: among("east", "west"), after: among("east", "wset"), want: riskyedit.Loss{Clusters: []string{"west"}, Mistake: "labelSelector asks for at=wset, which no cluster has (did you mean west?)", Unknown: true}},
		"one of several labels goes":               {before: among("east", "west"), after: among("east"), want: riskyedit.Loss{Clusters: []string{"west"}}},
		"a label is added that is yet to come":     {before: among("east"), after: among("east", "north")},
		"a region is mistyped":                     {before: regions("eu"), after: regions("ue"), want: riskyedit.Loss{Clusters: []string{"edge"}, Mistake: "fieldSelector asks for region=ue, which no cluster has (did you mean eu?)", Unknown: true}},
		"a weight is mistyped":                     {before: weights("east", "west"), after: weights("east", "wst"), want: riskyedit.Loss{Divided: []string{"west"}, Mistake: typo, Unknown: true}},
		"a weight goes":                            {before: weights("east", "west"), after: weights("east"), want: riskyedit.Loss{Divided: []string{"west"}}},
		"weights of one are mistyped, so that all weigh the same": {before: weights("west"), after: weights("wst")},
		"a label of the first term is mistyped": {
			before: labels("west", "east"), after: labels("wset", "east"),
			want: riskyedit.Loss{Clusters: []string{"west"}, Mistake: "labelSelector asks for at=wset, which no cluster has (did you mean west?)", Unknown: true},
		},
		"all are excluded":                             {before: of(nil), after: of(&policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"east", "west", "edge"}}), want: riskyedit.Loss{Clusters: []string{"east", "edge", "west"}, Mistake: none}},
		"a name of a later term is mistyped":           {before: terms([]string{"east"}, []string{"west"}), after: terms([]string{"east"}, []string{"wst"}), want: riskyedit.Loss{Clusters: []string{"west"}, Mistake: typo, Unknown: true}},
		"a term takes the place of what another meant": {before: terms([]string{"east"}, []string{"west"}), after: terms([]string{"west"}, []string{"east"})},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, riskyedit.Propagation(tc.before, tc.after, fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
