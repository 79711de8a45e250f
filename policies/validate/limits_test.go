package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// many makes n entries of a list.
func many[T any](n int, entry func(name string) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = entry(fmt.Sprint("q", i))
	}
	return out
}

func secret(name string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret", Name: name}
}

func rule(name string) policyv1alpha1.RuleWithCluster {
	return policyv1alpha1.RuleWithCluster{
		TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}},
		Overriders:    policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: "add", Value: map[string]string{"a": "b"}}}},
	}
}

// longPolicies are policies with n entries in one of their lists, by its path.
func longPolicies(n int) map[string]policyv1alpha1.PropagationSpec {
	group := func(name string) policyv1alpha1.ClusterAffinityTerm {
		return policyv1alpha1.ClusterAffinityTerm{AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}}
	}
	overflow := group("first")
	overflow.OverflowAffinities = many(n, func(name string) policyv1alpha1.OverflowAffinityTerm {
		return policyv1alpha1.OverflowAffinityTerm{AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}}
	})
	weights := many(n, func(name string) policyv1alpha1.StaticClusterWeight {
		return policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: 1}
	})
	tolerations := many(n, func(name string) corev1.Toleration {
		return corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists}
	})
	spread := many(n, func(name string) policyv1alpha1.SpreadConstraint {
		return policyv1alpha1.SpreadConstraint{SpreadByLabel: name, MinGroups: 1, MaxGroups: 1}
	})
	aggregated := &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"}
	weighted := &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted", WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: weights}}
	return map[string]policyv1alpha1.PropagationSpec{
		"spec.resourceSelectors":                                             {ResourceSelectors: many(n, secret)},
		"spec.dependentOverrides":                                            {DependentOverrides: many(n, strings.Clone)},
		"spec.placement.clusterAffinities":                                   {Placement: policyv1alpha1.Placement{ClusterAffinities: many(n, group)}},
		"spec.placement.clusterAffinities[0].overflowAffinities":             {Placement: policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{overflow}, ReplicaScheduling: aggregated}},
		"spec.placement.clusterTolerations":                                  {Placement: policyv1alpha1.Placement{ClusterTolerations: tolerations}},
		"spec.placement.spreadConstraints":                                   {Placement: policyv1alpha1.Placement{SpreadConstraints: spread}},
		"spec.placement.replicaScheduling.weightPreference.staticWeightList": {Placement: policyv1alpha1.Placement{ReplicaScheduling: weighted}},
	}
}

// TestLongLists: one request does not keep a processor busy: what a policy lists has a
// limit that none comes near who means it. What was there before it had one can be changed.
func TestLongLists(t *testing.T) {
	policy := func(spec policyv1alpha1.PropagationSpec) policyv1alpha1.Policy {
		p := &policyv1alpha1.ClusterPropagationPolicy{Spec: spec}
		validate.DefaultPolicy(p, true, newID)
		return p
	}
	override := func(selectors, rules int) policyv1alpha1.Override {
		return &policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: many(selectors, secret), OverrideRules: many(rules, rule)}}
	}
	most, beyond, further := longPolicies(1000), longPolicies(1001), longPolicies(14000)
	for path := range most {
		for name, tc := range map[string]struct {
			now, old policyv1alpha1.Policy
			want     []string
		}{
			"as long as may be":           {policy(most[path]), nil, nil},
			"longer":                      {policy(beyond[path]), nil, []string{path + ": Too many"}},
			"as long as it was":           {policy(beyond[path]), policy(beyond[path]), nil},
			"shorter than it was":         {policy(beyond[path]), policy(further[path]), nil},
			"longer than it ever was":     {policy(further[path]), policy(beyond[path]), []string{path + ": Too many"}},
			"much longer, when it is new": {policy(further[path]), nil, []string{path + ": Too many"}},
		} {
			errs, _ := validate.Policy(tc.now, tc.old)
			if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", path, name, diff)
			}
		}
	}
	for name, tc := range map[string]struct {
		now, old policyv1alpha1.Override
		want     []string
	}{
		"an override as long as may be":    {override(1000, 1000), nil, nil},
		"one of more templates":            {override(1001, 1), nil, []string{"spec.resourceSelectors: Too many"}},
		"one of more rules":                {override(1, 14000), nil, []string{"spec.overrideRules: Too many"}},
		"one that was as long":             {override(1001, 1), override(1001, 1), nil},
		"one that had as many rules":       {override(1, 1001), override(1, 1001), nil},
		"one that had fewer":               {override(1, 1002), override(1, 1001), []string{"spec.overrideRules: Too many"}},
		"one that was long somewhere else": {override(1, 1001), override(1001, 1), []string{"spec.overrideRules: Too many"}},
	} {
		errs, _ := validate.Override(tc.now, tc.old)
		if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestListsOfAnyLength: what has no limit, as fleets have none, is looked at once. Each
// with each would be 10^10 comparisons of texts in each of these, and not end.
func TestListsOfAnyLength(t *testing.T) {
	const n = 100_000
	named := many(n, func(name string) string { return "a-" + name })
	others := many(n, func(name string) string { return "b-" + name })
	everything := append(append([]string{}, others...), named...)
	requires := func(values ...[]string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{}
		for _, v := range values {
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: v})
		}
		return s
	}
	exists := &metav1.LabelSelector{MatchExpressions: many(n, func(string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpExists}
	})}
	weights := func(target, affinity []string) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{
			ClusterAffinities: many(1000, func(name string) policyv1alpha1.ClusterAffinityTerm {
				return policyv1alpha1.ClusterAffinityTerm{AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: append(affinity[:10:10], name)}}
			}),
			ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted", WeightPreference: &policyv1alpha1.ClusterPreferences{
					StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: target}, Weight: 1}},
				},
			},
		}
	}
	affinity := func(a policyv1alpha1.ClusterAffinity) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ClusterAffinity: &a}
	}
	for name, tc := range map[string]struct {
		placement policyv1alpha1.Placement
		want      []string
	}{
		"clusters named, and others excluded": {affinity(policyv1alpha1.ClusterAffinity{ClusterNames: named, ExcludeClusters: others}), nil},
		"all of them excluded":                {affinity(policyv1alpha1.ClusterAffinity{ClusterNames: named, ExcludeClusters: everything}), []string{"spec.placement.clusterAffinity: exclude lists every cluster"}},
		"labels that cannot both be":          {affinity(policyv1alpha1.ClusterAffinity{LabelSelector: requires(named, others)}), []string{"spec.placement.clusterAffinity.labelSelector.matchExpressions[1]: contradicts"}},
		"labels that can, after all":          {affinity(policyv1alpha1.ClusterAffinity{LabelSelector: requires(named, everything)}), nil},
		"one thing that is asked for again":   {affinity(policyv1alpha1.ClusterAffinity{LabelSelector: exists}), nil},
		"weights of clusters of no group":     {weights(others, named), []string{"spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster.clusterNames: the affinity allows none"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policyv1alpha1.ClusterPropagationPolicy{Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: many(1, secret), Placement: tc.placement}}
			validate.DefaultPolicy(p, true, newID)
			errs, warnings := validate.Policy(p, nil)
			if len(errs) > 0 {
				t.Errorf("it is refused: %v", errs.ToAggregate())
			}
			begin(t, tc.want, warnings)
		})
	}
}

// BenchmarkLongLists: twice as much takes twice as long.
func BenchmarkLongLists(b *testing.B) {
	for _, n := range []int{500, 1000} {
		for path, spec := range longPolicies(n) {
			p := &policyv1alpha1.ClusterPropagationPolicy{Spec: spec}
			b.Run(fmt.Sprint(path, "/", n), func(b *testing.B) {
				for b.Loop() {
					validate.Policy(p, nil)
				}
			})
		}
	}
}
