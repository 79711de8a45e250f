package selector_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func TestMatch(t *testing.T) {
	web := selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
	labels := func(s *metav1.LabelSelector) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: s}
	}
	exists := []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}
	cases := map[string]struct {
		selector policyv1alpha1.ResourceSelector
		want     selector.Specificity
	}{
		"all of the kind":                       {labels(nil), selector.All},
		"another version of the API":            {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"}, selector.None},
		"another kind":                          {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "DaemonSet"}, selector.None},
		"its namespace":                         {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop"}, selector.All},
		"another namespace":                     {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "bank"}, selector.None},
		"its name":                              {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, selector.Name},
		"another name":                          {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: "db"}, selector.None},
		"a name beats labels that do not match": {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}, selector.Name},
		"its labels":                            {labels(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}), selector.Labels},
		"other labels":                          {labels(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}), selector.None},
		"labels that it lacks":                  {labels(&metav1.LabelSelector{MatchLabels: map[string]string{"tier": ""}}), selector.None},
		"a label that exists":                   {labels(&metav1.LabelSelector{MatchExpressions: exists}), selector.Labels},
		"an empty label selector":               {labels(&metav1.LabelSelector{}), selector.Labels},
		"a label selector that is broken":       {labels(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}), selector.None},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := selector.Match(tc.selector, web); got != tc.want {
				t.Errorf("match = %v, want %v", got, tc.want)
			}
			all := []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}, tc.selector}
			if got := selector.Best(all, web); got != tc.want {
				t.Errorf("best = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCluster(t *testing.T) {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Labels: map[string]string{"tier": "gold"}}}
	c.Spec.Region, c.Spec.Zones = "eu", []string{"a", "b"}
	old := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: clusterv1alpha1.ClusterSpec{Zone: "z"}}
	bare := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	fields := func(key string, op corev1.NodeSelectorOperator, values ...string) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}},
		}}
	}
	cases := map[string]struct {
		affinity *policyv1alpha1.ClusterAffinity
		cluster  *clusterv1alpha1.Cluster
		want     bool
	}{
		"no affinity":                         {nil, c, true},
		"an empty one":                        {&policyv1alpha1.ClusterAffinity{}, c, true},
		"its name":                            {&policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x", "eu-1"}}, c, true},
		"another name":                        {&policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"}}, c, false},
		"excluded though named":               {&policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu-1"}, ExcludeClusters: []string{"eu-1"}}, c, false},
		"its label":                           {&policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}, c, true},
		"named, but another label":            {&policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu-1"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "tin"}}}, c, false},
		"a broken label selector":             {&policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: "Near"}}}}, c, false},
		"in its region":                       {fields("region", corev1.NodeSelectorOpIn, "us", "eu"), c, true},
		"in another region":                   {fields("region", corev1.NodeSelectorOpIn, "us"), c, false},
		"not in another region":               {fields("region", corev1.NodeSelectorOpNotIn, "us"), c, true},
		"without a provider it is in none":    {fields("provider", corev1.NodeSelectorOpIn, ""), c, false},
		"without a provider it is not in any": {fields("provider", corev1.NodeSelectorOpNotIn, "x"), c, true},
		"one zone overlaps":                   {fields("zone", corev1.NodeSelectorOpIn, "b", "c"), c, true},
		"no zone may overlap":                 {fields("zone", corev1.NodeSelectorOpNotIn, "b", "c"), c, false},
		"zones exist":                         {fields("zone", corev1.NodeSelectorOpExists), c, true},
		"no provider exists":                  {fields("provider", corev1.NodeSelectorOpDoesNotExist), c, true},
		"the deprecated zone counts":          {fields("zone", corev1.NodeSelectorOpIn, "z"), old, true},
		"without a zone it is in none":        {fields("zone", corev1.NodeSelectorOpIn, ""), bare, false},
		"without a zone none exists":          {fields("zone", corev1.NodeSelectorOpExists), bare, false},
		"a field that nobody knows":           {fields("planet", corev1.NodeSelectorOpIn, "earth"), c, false},
		"an operator that nobody knows":       {fields("region", corev1.NodeSelectorOpGt, "1"), c, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := selector.Cluster(tc.cluster, tc.affinity); got != tc.want {
				t.Errorf("means it = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestPlacement: what any of its affinities means, a placement means.
func TestPlacement(t *testing.T) {
	names := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	one := names("west")
	terms := &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: names("west"), OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{ClusterAffinity: names("edge")}}},
		{AffinityName: "second", ClusterAffinity: names("east")},
	}}
	for name, tc := range map[string]struct {
		placement *policyv1alpha1.Placement
		want      []string
	}{
		"none":                                   {want: []string{"west", "edge", "east", "north"}},
		"without affinity":                       {placement: &policyv1alpha1.Placement{}, want: []string{"west", "edge", "east", "north"}},
		"one affinity":                           {placement: &policyv1alpha1.Placement{ClusterAffinity: &one}, want: []string{"west"}},
		"several, in order, with what overflows": {placement: terms, want: []string{"west", "edge", "east"}},
	} {
		var got []string
		for _, cluster := range []string{"west", "edge", "east", "north"} {
			if selector.Placement(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, tc.placement) {
				got = append(got, cluster)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: means %v, want %v", name, got, tc.want)
		}
	}
}
