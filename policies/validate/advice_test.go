package validate_test

import (
	"testing"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// Policies that are valid, and of which a part will never do what it says.
func TestPolicyAdvice(t *testing.T) {
	const one = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]\n"
	place := func(text string) string { return one + "placement: {" + text + "}" }
	weights := func(text string) string {
		return place("clusterAffinity: {clusterNames: [a, b]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {" + text + "}}")
	}
	for name, tc := range map[string]struct {
		spec string
		want []string // what the warnings begin with
	}{
		"a plain one": {one, nil},
		"a full one, but for fixed weights": {place(`clusterAffinity: {clusterNames: [a, b], exclude: [c], labelSelector: {matchLabels: {x: 'y'}, matchExpressions: [{key: x, operator: In, values: ['y', z]}, {key: x, operator: Exists}, {key: z, operator: NotIn, values: ['y']}]}},
  clusterTolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}, {key: a, operator: Exists, effect: NoSchedule}],
  spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 2}, {spreadByField: cluster, minGroups: 2, maxGroups: 2}],
  replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [a, c]}, weight: 1}, {targetCluster: {labelSelector: {matchLabels: {a: b}}}, weight: 1}]}}`), []string{"spec.placement.spreadConstraints: have no effect when replicas are divided by fixed weights"}},

		"a name next to labels":                    {"resourceSelectors: [{apiVersion: v1, kind: Secret, name: a, labelSelector: {matchLabels: {a: b}}}]", []string{"spec.resourceSelectors[0].labelSelector: has no effect next to a name"}},
		"a selector that is there twice":           {"resourceSelectors: [{apiVersion: v1, kind: Secret, name: a}, {apiVersion: v1, kind: Secret, name: b}, {apiVersion: v1, kind: Secret, name: a}]", []string{"spec.resourceSelectors[2]: says the same as resourceSelectors[0]"}},
		"kinds that stay on the control plane":     {"resourceSelectors: [{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy}, {apiVersion: v1, kind: Event}, {apiVersion: coordination.k8s.io/v1, kind: Lease}]", []string{"spec.resourceSelectors[0].kind: ", "spec.resourceSelectors[1].kind: ", "spec.resourceSelectors[2].kind: "}},
		"a namespace that stays there":             {"resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: karmada-system}]", []string{"spec.resourceSelectors[0].namespace: nothing in karmada-system is propagated"}},
		"templates that ask for two labels":        {"resourceSelectors: [{apiVersion: v1, kind: Secret, labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: DoesNotExist}]}}]", []string{"spec.resourceSelectors[0].labelSelector.matchExpressions[0]: contradicts matchLabels, which wants a=b"}},
		"overrides that are named twice or not":    {one + "dependentOverrides: [a, '', a]", []string{"spec.dependentOverrides[1]: is empty", "spec.dependentOverrides[2]: a is listed before"}},
		"clusters that are named and excluded":     {place("clusterAffinity: {clusterNames: [a, b], exclude: [b]}"), []string{"spec.placement.clusterAffinity.exclude[0]: b is in clusterNames, too"}},
		"no cluster at all":                        {place("clusterAffinity: {clusterNames: [a], exclude: [b, a]}"), []string{"spec.placement.clusterAffinity: exclude lists every cluster"}},
		"clusters with a label of two values":      {place("clusterAffinity: {labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [c]}]}}"), []string{"spec.placement.clusterAffinity.labelSelector.matchExpressions[0]: contradicts matchLabels"}},
		"clusters whose label must be and not be":  {place("clusterAffinity: {labelSelector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}, {key: b, operator: In, values: [c]}, {key: b, operator: NotIn, values: [c]}]}}"), []string{"spec.placement.clusterAffinity.labelSelector.matchExpressions[1]: contradicts matchExpressions[0]", "spec.placement.clusterAffinity.labelSelector.matchExpressions[3]: contradicts matchExpressions[2]"}},
		"a field of no value":                      {place("clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: In}]}}"), []string{"spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].values: is empty"}},
		"terms behind one that allows all":         {place("clusterAffinities: [{affinityName: a}, {affinityName: b, clusterNames: [b]}]"), []string{"spec.placement.clusterAffinities[1]: is never reached: clusterAffinities[0] allows all of its clusters"}},
		"terms that are the same":                  {place("clusterAffinities: [{affinityName: a, clusterNames: [x]}, {affinityName: b, clusterNames: [q]}, {affinityName: c, clusterNames: [x]}]"), []string{"spec.placement.clusterAffinities[2]: is never reached"}},
		"an overflow that has no cluster":          {place("clusterAffinities: [{affinityName: a, clusterNames: [x], overflowAffinities: [{affinityName: b, clusterNames: [q], exclude: [q]}]}], replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"), []string{"spec.placement.clusterAffinities[0].overflowAffinities[0]: exclude lists every cluster"}},
		"tolerations that are of no use":           {place("clusterTolerations: [{key: a, operator: Exists, effect: PreferNoSchedule}, {key: b, operator: Exists, tolerationSeconds: 3}, {key: b, operator: Exists, tolerationSeconds: 3}]"), []string{"spec.placement.clusterTolerations[0].effect: ", "spec.placement.clusterTolerations[1].tolerationSeconds: ", "spec.placement.clusterTolerations[2].tolerationSeconds: ", "spec.placement.clusterTolerations[2]: is there twice"}},
		"more regions than clusters":               {place("spreadConstraints: [{spreadByField: region, minGroups: 3, maxGroups: 3}, {spreadByField: cluster, minGroups: 1, maxGroups: 2}]"), []string{"spec.placement.spreadConstraints[0].minGroups: 3 of region can not be met by 2 clusters"}},
		"more clusters than are named":             {place("clusterAffinity: {clusterNames: [a, a, b]}, spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 5}]"), []string{"spec.placement.spreadConstraints: 3 clusters are needed, clusterAffinity names 2"}},
		"spread without a maximum":                 {place("spreadConstraints: [{spreadByField: cluster}, {spreadByLabel: x, maxGroups: 1}]"), []string{"spec.placement.spreadConstraints[0]: maxGroups is not set"}},
		"weights of what is duplicated":            {place("replicaScheduling: {replicaSchedulingType: Duplicated, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"), []string{"spec.placement.replicaScheduling.replicaDivisionPreference: has no effect", "spec.placement.replicaScheduling.weightPreference: has no effect"}},
		"weights of what is aggregated":            {place("replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated, weightPreference: {dynamicWeight: AvailableReplicas}}"), []string{"spec.placement.replicaScheduling.weightPreference: has no effect when the preference is Aggregated"}},
		"weights of both kinds":                    {weights("dynamicWeight: AvailableReplicas, staticWeightList: [{targetCluster: {clusterNames: [a]}, weight: 1}]"), []string{"spec.placement.replicaScheduling.weightPreference.staticWeightList: has no effect next to dynamicWeight"}},
		"weights of clusters that are not allowed": {weights("staticWeightList: [{targetCluster: {clusterNames: [a, x]}, weight: 1}, {targetCluster: {clusterNames: [x, q]}, weight: 1}]"), []string{"spec.placement.replicaScheduling.weightPreference.staticWeightList[1].targetCluster.clusterNames: the affinity allows none of x, q"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policyv1alpha1.ClusterPropagationPolicy{Spec: *decode[policyv1alpha1.PropagationSpec](t, tc.spec)}
			p.Name = "p"
			validate.DefaultPolicy(p, true, newID)
			errs, warnings := validate.Policy(p, nil)
			if len(errs) > 0 {
				t.Errorf("the policy is refused: %v", errs.ToAggregate())
			}
			begin(t, tc.want, warnings)
		})
	}
}

func TestPolicyInAReservedNamespace(t *testing.T) {
	p := decode[policyv1alpha1.PropagationPolicy](t, "{metadata: {name: p, namespace: karmada-es-a}, spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}]}}")
	validate.DefaultPolicy(p, true, newID)
	_, warnings := validate.Policy(p, nil)
	begin(t, []string{"metadata.namespace: nothing in karmada-es-a is propagated", "spec.resourceSelectors[0].namespace: "}, warnings)
}

// Overrides that are valid, and of which a part changes nothing or will fail.
func TestOverrideAdvice(t *testing.T) {
	const web = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n"
	rules := func(text string) string { return web + "overrideRules: [" + text + "]" }
	const change = "{overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 1}]}}"
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"a plain one":                          {rules(change), nil},
		"an override of nothing":               {web, []string{"spec: there are no overrideRules"}},
		"a rule of nothing":                    {rules("{targetCluster: {clusterNames: [a]}, overriders: {}}"), []string{"spec.overrideRules[0].overriders: is empty"}},
		"a rule that is there twice":           {rules(change + ", " + change), []string{"spec.overrideRules[1]: says the same as overrideRules[0]"}},
		"a rule for no cluster":                {rules("{targetCluster: {clusterNames: [a], exclude: [a]}, overriders: {argsOverrider: [{containerName: a, operator: add, value: [b]}]}}"), []string{"spec.overrideRules[0].targetCluster: exclude lists every cluster"}},
		"an image of a kind without a place":   {"resourceSelectors: [{apiVersion: v1, kind: Secret}]\noverrideRules: [{overriders: {imageOverrider: [{component: Tag, operator: replace, value: v1}], commandOverrider: [{containerName: a, operator: add, value: [b]}], argsOverrider: [{containerName: a, operator: add, value: [b]}]}}]", []string{"spec.overrideRules[0].overriders.imageOverrider[0].predicate: Secret has no containers", "spec.overrideRules[0].overriders.commandOverrider: Secret", "spec.overrideRules[0].overriders.argsOverrider: Secret"}},
		"an image of a kind with a place":      {"resourceSelectors: [{apiVersion: v1, kind: Secret}]\noverrideRules: [{overriders: {imageOverrider: [{predicate: {path: /data/x}, component: Tag, operator: replace, value: v1}]}}]", nil},
		"an image without repository or value": {rules("{overriders: {imageOverrider: [{component: Repository, operator: remove}, {component: Tag, operator: replace}]}}"), []string{"spec.overrideRules[0].overriders.imageOverrider[0].component: ", "spec.overrideRules[0].overriders.imageOverrider[1].value: "}},
		"another name, and null":               {rules("{overriders: {plaintext: [{path: /metadata/name, operator: replace, value: x}, {path: /spec/x, operator: add}]}}"), []string{"spec.overrideRules[0].overriders.plaintext[0].path: ", "spec.overrideRules[0].overriders.plaintext[1].value: is missing"}},
		"fields that no cluster gets": {rules("{overriders: {plaintext: [{path: /metadata/ownerReferences, operator: remove}, {path: /metadata/finalizers/0, operator: add, value: x}, {path: /status/replicas, operator: replace, value: 1}]}}"), []string{
			"spec.overrideRules[0].overriders.plaintext[0].path: has no effect, and fails where there is none: no cluster is sent metadata.ownerReferences in any case",
			"spec.overrideRules[0].overriders.plaintext[1].path: has no effect: no cluster is sent metadata.finalizers in any case",
			"spec.overrideRules[0].overriders.plaintext[2].path: has no effect: no cluster is sent status in any case",
		}},
		"a field of such a name elsewhere": {rules("{overriders: {plaintext: [{path: /spec/template/metadata/finalizers, operator: remove}, {path: /metadata/uidx, operator: add, value: x}, {path: /statusx, operator: remove}]}}"), nil},
		"the deprecated way":               {web + "targetCluster: {clusterNames: [a], exclude: [a]}\noverriders: {plaintext: [{path: /kind, operator: remove}]}", []string{"spec.targetCluster and spec.overriders are deprecated", "spec.targetCluster: exclude lists every cluster", "spec.overriders.plaintext[0].path: "}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &policyv1alpha1.ClusterOverridePolicy{Spec: *decode[policyv1alpha1.OverrideSpec](t, tc.spec)}
			errs, warnings := validate.Override(o, nil)
			if len(errs) > 0 {
				t.Errorf("the override is refused: %v", errs.ToAggregate())
			}
			begin(t, tc.want, warnings)
		})
	}
}
