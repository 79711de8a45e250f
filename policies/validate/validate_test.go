package validate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/validate"
)

func newID() string { return "new-id" }

// decode reads T from YAML, refusing unknown fields.
func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fields returns the fields that errors are about, in order.
func fields(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, fmt.Sprintf("%s: %s", e.Field, e.Type))
	}
	return out
}

func TestDefaultPolicy(t *testing.T) {
	p := decode[policyv1alpha1.PropagationPolicy](t, `
metadata: {namespace: shop, name: p, labels: {propagationpolicy.karmada.io/permanent-id: mine}}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, namespace: other}
  placement:
    spreadConstraints: [{maxGroups: 2}, {spreadByLabel: x, minGroups: 3}]
    replicaScheduling: {replicaSchedulingType: Divided}
  failover: {application: {decisionConditions: {}, purgeMode: Gracefully}}`)
	validate.DefaultPolicy(p, true, newID)
	want := decode[policyv1alpha1.PropagationPolicy](t, `
metadata:
  namespace: shop
  name: p
  labels: {propagationpolicy.karmada.io/permanent-id: new-id}
  finalizers: [karmada.io/propagation-policy-controller]
spec:
  propagateDeps: true
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, namespace: shop}
  - {apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, namespace: other}
  placement:
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}, {spreadByLabel: x, minGroups: 3}]
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
  failover: {application: {decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 600}}`)
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("defaulted (-want +got):\n%s", diff)
	}
	validate.DefaultPolicy(p, false, func() string { t.Error("an update got a new id"); return "" })
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("defaulting twice is not defaulting once:\n%s", diff)
	}
	wide := decode[policyv1alpha1.ClusterPropagationPolicy](t, `{metadata: {name: p}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}]}}`)
	validate.DefaultPolicy(wide, true, newID)
	if wide.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "new-id" || len(wide.Finalizers) != 1 || wide.Spec.ResourceSelectors[0].Namespace != "" {
		t.Errorf("cluster-wide policy = %+v", wide)
	}
}

func TestPolicy(t *testing.T) {
	const selectors = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]`
	cases := map[string]struct {
		spec string
		want []string
	}{
		"a plain one": {selectors, nil},
		"a full one": {selectors + `
propagateDeps: true
placement:
  clusterAffinities:
  - affinityName: own
    clusterNames: [a]
    overflowAffinities: [{affinityName: rented, clusterNames: [b]}]
  clusterTolerations: [{key: a, operator: Exists}, {operator: Exists}, {key: b, value: c}]
  spreadConstraints: [{spreadByField: region, minGroups: 1, maxGroups: 2}, {spreadByField: cluster, minGroups: 1, maxGroups: 4}]
  replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
  workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: b}}
failover: {application: {decisionConditions: {tolerationSeconds: 0}, purgeMode: Gracefully, gracePeriodSeconds: 1}}
suspension: {dispatchingOnClusters: {clusterNames: [a]}}`, nil},
		"a selector of another namespace": {`resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: bank}]`, []string{"spec.resourceSelectors[0].namespace: Invalid value"}},
		"a selector whose labels are broken": {`resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop, labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]`,
			[]string{"spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator: Invalid value"}},
		"preemption without a name": {`{preemption: Always, resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop}]}`, []string{"spec.resourceSelectors[0].name: Required value"}},
		"both kinds of affinity":    {selectors + "\nplacement: {clusterAffinity: {}, clusterAffinities: [{affinityName: a}]}", []string{"spec.placement: Invalid value"}},
		"two terms of one name":     {selectors + "\nplacement: {clusterAffinities: [{affinityName: a}, {affinityName: a}]}", []string{"spec.placement.clusterAffinities[1].affinityName: Duplicate value"}},
		"a term with a bad name":    {selectors + "\nplacement: {clusterAffinities: [{affinityName: a b}]}", []string{"spec.placement.clusterAffinities[0].affinityName: Invalid value"}},
		"overflow for static weights, after an empty affinity, of a name that is taken": {
			selectors + "\nplacement: {clusterAffinities: [{affinityName: a, overflowAffinities: [{affinityName: a}]}]}",
			[]string{"spec.placement.clusterAffinities[0].overflowAffinities: Forbidden", "spec.placement.clusterAffinities[0].overflowAffinities: Forbidden", "spec.placement.clusterAffinities[0].overflowAffinities[0].affinityName: Duplicate value"},
		},
		"a field that nobody has": {selectors + "\nplacement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: planet, operator: In, values: [x]}]}}}",
			[]string{"spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].key: Unsupported value"}},
		"an operator that fields lack": {selectors + "\nplacement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: Gt, values: ['1']}]}}}",
			[]string{"spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].operator: Unsupported value"}},
		"tolerations that make no sense": {selectors + "\nplacement: {clusterTolerations: [{value: a}, {key: a, operator: Exists, value: b}, {key: a, operator: Lt, value: '1'}, {key: a b, operator: Exists}]}",
			[]string{"spec.placement.clusterTolerations[0].operator: Invalid value", "spec.placement.clusterTolerations[1].value: Invalid value", "spec.placement.clusterTolerations[2].operator: Unsupported value", "spec.placement.clusterTolerations[3].key: Invalid value"}},
		"spread by both": {selectors + "\nplacement: {spreadConstraints: [{spreadByField: cluster, spreadByLabel: x, minGroups: 1}]}", []string{"spec.placement.spreadConstraints[0]: Invalid value"}},
		"spread that is impossible": {selectors + "\nplacement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}, {spreadByField: cluster, minGroups: -1, maxGroups: -1}]}",
			[]string{"spec.placement.spreadConstraints[0].maxGroups: Invalid value", "spec.placement.spreadConstraints[1].minGroups: Invalid value", "spec.placement.spreadConstraints[1].maxGroups: Invalid value", "spec.placement.spreadConstraints[1].spreadByField: Duplicate value"}},
		"spread by region alone": {selectors + "\nplacement: {spreadConstraints: [{spreadByField: region, minGroups: 1}]}", []string{"spec.placement.spreadConstraints: Required value"}},
		"a weight of zero": {selectors + "\nplacement: {replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}",
			[]string{"spec.placement.replicaScheduling.weightPreference.staticWeightList[0].weight: Invalid value"}},
		"affinity and anti-affinity by one key": {selectors + "\nplacement: {workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}}", []string{"spec.placement.workloadAffinity: Invalid value"}},
		"failover that leaves dependencies behind": {selectors + "\nfailover: {application: {decisionConditions: {tolerationSeconds: -1}, purgeMode: Directly, gracePeriodSeconds: 5, statePreservation: {rules: [{aliasLabelName: a b, jsonPath: x}, {aliasLabelName: apps.kubernetes.io/pod-index, jsonPath: '{.a}'}]}}}",
			[]string{"spec.propagateDeps: Invalid value", "spec.failover.application.decisionConditions.tolerationSeconds: Invalid value", "spec.failover.application.gracePeriodSeconds: Invalid value", "spec.failover.application.statePreservation.rules[0].aliasLabelName: Invalid value", "spec.failover.application.statePreservation.rules[0].jsonPath: Invalid value", "spec.failover.application.statePreservation.rules[1].aliasLabelName: Invalid value"}},
		"a graceful failover without grace": {selectors + "\npropagateDeps: true\nfailover: {application: {decisionConditions: {}, purgeMode: Gracefully}}", []string{"spec.failover.application.gracePeriodSeconds: Required value"}},
		"no grace at all":                   {selectors + "\npropagateDeps: true\nfailover: {application: {decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 0}}", []string{"spec.failover.application.gracePeriodSeconds: Invalid value"}},
		"suspended twice":                   {selectors + "\nsuspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}}", []string{"spec.suspension: Invalid value"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &policyv1alpha1.PropagationPolicy{Spec: *decode[policyv1alpha1.PropagationSpec](t, tc.spec)}
			p.Namespace, p.Labels = "shop", map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
			errs, _ := validate.Policy(p, nil)
			if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s\n%v", diff, errs.ToAggregate())
			}
		})
	}
}

// TestWhatAPolicyOpens: what would open nothing, or other namespaces than it seems,
// is refused when it is reported.
func TestWhatAPolicyOpens(t *testing.T) {
	const key = "metadata.annotations[propagation.flotilla.io/dependency-namespaces]: Invalid value"
	of := func(namespace, text string) policyv1alpha1.Policy {
		meta := metav1.ObjectMeta{
			Namespace: namespace, Annotations: map[string]string{"propagation.flotilla.io/dependency-namespaces": text},
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id", policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
		}
		if namespace != "" {
			return &policyv1alpha1.PropagationPolicy{ObjectMeta: meta}
		}
		return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta}
	}
	cases := map[string]struct {
		namespace, text, before string
		errs, warnings          []string
	}{
		"one":                          {text: "certs"},
		"several, with room":           {text: "certs, shared ,"},
		"every one":                    {text: "*"},
		"none":                         {text: ""},
		"every one and another":        {text: "certs,*", errs: []string{key}},
		"a pattern":                    {text: "team-*", errs: []string{key}},
		"a list of another kind":       {text: "[\"certs\"]", errs: []string{key}},
		"names without commas":         {text: "certs shared", errs: []string{key}},
		"no name that a namespace has": {text: "Certs,a.b", errs: []string{key, key}},
		"what it said before":          {text: "team-*", before: "team-*"},
		"what it said otherwise":       {text: "team-*", before: "certs", errs: []string{key}},
		"by a tenant":                  {namespace: "shop", text: "team-*", warnings: []string{"metadata.annotations[propagation.flotilla.io/dependency-namespaces]: has no effect here"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old policyv1alpha1.Policy
			if tc.before != "" {
				old = of(tc.namespace, tc.before)
			}
			errs, warnings := validate.Policy(of(tc.namespace, tc.text), old)
			if diff := cmp.Diff(tc.errs, fields(errs), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			begin(t, tc.warnings, warnings)
		})
	}
}

func TestPolicyIdentity(t *testing.T) {
	old := &policyv1alpha1.ClusterPropagationPolicy{}
	old.Labels = map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}
	p := old.DeepCopy()
	p.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel], p.Spec.SchedulerName = "other", "mine"
	errs, _ := validate.Policy(p, old)
	key := "metadata.labels[" + policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel + "]"
	if diff := cmp.Diff([]string{key + ": Invalid value", "spec.schedulerName: Invalid value"}, fields(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	errs, _ = validate.Policy(&policyv1alpha1.ClusterPropagationPolicy{}, old)
	if diff := cmp.Diff([]string{key + ": Required value"}, fields(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestPolicyWarnings(t *testing.T) {
	p := &policyv1alpha1.PropagationPolicy{Spec: *decode[policyv1alpha1.PropagationSpec](t, `
association: true
resourceSelectors: []
placement: {spreadConstraints: [{spreadByLabel: x, minGroups: 1}]}`)}
	_, got := validate.Policy(p, nil)
	want := []string{
		"spec.association: is deprecated and has no effect: use spec.propagateDeps",
		"spec.placement.spreadConstraints[0]: maxGroups is not set, so there is no maximum",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestOverride(t *testing.T) {
	rule := func(overriders string) string { return "overrideRules: [{overriders: {" + overriders + "}}]" }
	const at = "spec.overrideRules[0].overriders."
	cases := map[string]struct {
		spec string
		want []string
	}{
		"a full one":                          {rule(`plaintext: [{path: /a, operator: remove}], imageOverrider: [{predicate: {path: /a}, component: Tag, operator: remove}], labelsOverrider: [{operator: add, value: {a: b}}], fieldOverrider: [{fieldPath: /a, json: [{subPath: /b, operator: add, value: 1}]}]`), nil},
		"old and new fields":                  {"overriders: {plaintext: [{path: /a, operator: remove}]}\n" + rule(""), []string{"spec.overrideRules: Invalid value"}},
		"a selector of another namespace":     {"resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: bank}]", []string{"spec.resourceSelectors[0].namespace: Invalid value"}},
		"paths that are none":                 {rule(`plaintext: [{path: a, operator: remove}], imageOverrider: [{predicate: {path: /a~2}, component: Tag, operator: remove}]`), []string{at + "imageOverrider[0].predicate.path: Invalid value", at + "plaintext[0].path: Invalid value"}},
		"a label that is none":                {rule(`labelsOverrider: [{operator: add, value: {a: "b c"}}]`), []string{at + "labelsOverrider[0].value: Invalid value"}},
		"an annotation that is none":          {rule(`annotationsOverrider: [{operator: add, value: {"a b": c}}]`), []string{at + "annotationsOverrider[0].value: Invalid value"}},
		"neither JSON nor YAML":               {rule(`fieldOverrider: [{fieldPath: /a}]`), []string{at + "fieldOverrider[0]: Invalid value"}},
		"both JSON and YAML":                  {rule(`fieldOverrider: [{fieldPath: /a, json: [{subPath: /b, operator: remove}], yaml: [{subPath: /b, operator: remove}]}]`), []string{at + "fieldOverrider[0]: Invalid value"}},
		"values where they do not belong":     {rule(`fieldOverrider: [{fieldPath: /a, yaml: [{subPath: /b, operator: remove, value: 1}, {subPath: /b, operator: add}]}]`), []string{at + "fieldOverrider[0].yaml[0].value: Invalid value", at + "fieldOverrider[0].yaml[1].value: Required value"}},
		"a target of a field that nobody has": {`overrideRules: [{targetCluster: {fieldSelector: {matchExpressions: [{key: x, operator: In, values: [a]}]}}, overriders: {}}]`, []string{"spec.overrideRules[0].targetCluster.fieldSelector.matchExpressions[0].key: Unsupported value"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &policyv1alpha1.OverridePolicy{Spec: *decode[policyv1alpha1.OverrideSpec](t, tc.spec)}
			o.Namespace = "shop"
			validate.DefaultOverride(o)
			errs, _ := validate.Override(o, nil)
			if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s\n%v", diff, errs.ToAggregate())
			}
		})
	}
}

func TestCluster(t *testing.T) {
	models := func(ranges ...string) string {
		var out []string
		for i, r := range ranges {
			lo, hi, _ := strings.Cut(r, "-")
			out = append(out, fmt.Sprintf("{grade: %d, ranges: [{name: cpu, min: %q, max: %q}]}", i, lo, hi))
		}
		return "syncMode: Push\nresourceModels: [" + strings.Join(out, ", ") + "]"
	}
	const most = "9223372036854775807"
	cases := map[string]struct {
		name, spec string
		want       []string
	}{
		"a plain one":                 {"eu-1", "syncMode: Push", nil},
		"a full one":                  {"eu-1", "{syncMode: Pull, apiEndpoint: 'https://1.2.3.4:6443', secretRef: {namespace: a, name: b}, proxyURL: 'socks5://x:1', provider: p, region: r, zones: [a, b], taints: [{key: a, effect: NoExecute}, {key: a, effect: NoSchedule}]}", nil},
		"a name that is too long":     {strings.Repeat("a", 49), "syncMode: Push", []string{"metadata.name: Too long"}},
		"a name that is no label":     {"EU.1", "syncMode: Push", []string{"metadata.name: Invalid value"}},
		"a name of another's Secret":  {"eu-1-impersonator", "syncMode: Push", []string{"metadata.name: Invalid value"}},
		"no name":                     {"", "syncMode: Push", []string{"metadata.name: Required value"}},
		"no mode":                     {"a", "{}", []string{"spec.syncMode: Unsupported value"}},
		"an endpoint without a host":  {"a", "{syncMode: Push, apiEndpoint: nonsense}", []string{"spec.apiEndpoint: Invalid value"}},
		"an endpoint with a user":     {"a", "{syncMode: Push, apiEndpoint: 'https://u:p@x'}", []string{"spec.apiEndpoint: Invalid value"}},
		"an endpoint with a query":    {"a", "{syncMode: Push, apiEndpoint: 'https://x?a=b'}", []string{"spec.apiEndpoint: Invalid value"}},
		"an endpoint with a fragment": {"a", "{syncMode: Push, apiEndpoint: 'https://x#a'}", []string{"spec.apiEndpoint: Invalid value"}},
		"a proxy of another scheme":   {"a", "{syncMode: Push, proxyURL: 'ftp://x'}", []string{"spec.proxyURL: Unsupported value"}},
		"half a secret":               {"a", "{syncMode: Push, secretRef: {namespace: a, name: ''}, impersonatorSecretRef: {namespace: '', name: a}}", []string{"spec.secretRef.name: Required value", "spec.impersonatorSecretRef.namespace: Required value"}},
		"places that are no labels":   {"a", "{syncMode: Push, provider: a b, region: c d, zones: [e f]}", []string{"spec.provider: Invalid value", "spec.region: Invalid value", "spec.zones[0]: Invalid value"}},
		"zone and zones":              {"a", "{syncMode: Push, zone: a, zones: [b]}", []string{"spec.zone: Invalid value"}},
		"taints that make no sense":   {"a", "{syncMode: Push, taints: [{key: a b, effect: NoSchedule}, {key: a, effect: PreferNoSchedule}, {key: b, effect: NoSchedule}, {key: b, value: c, effect: NoSchedule}]}", []string{"spec.taints[0].key: Invalid value", "spec.taints[1].effect: Unsupported value", "spec.taints[3]: Duplicate value"}},
		"models without a gap":        {"a", models("0-1", "1-"+most), nil},
		"models with a gap":           {"a", models("0-1", "2-"+most), []string{"spec.resourceModels[1].ranges[0].min: Invalid value"}},
		"models that start late":      {"a", models("1-" + most), []string{"spec.resourceModels[0].ranges[0].min: Invalid value"}},
		"models that end early":       {"a", models("0-1"), []string{"spec.resourceModels[0].ranges[0].max: Invalid value"}},
		"a model upside down":         {"a", models("0-0", "0-"+most), []string{"spec.resourceModels[0].ranges[0].max: Invalid value"}},
		"models of other resources":   {"a", "{syncMode: Push, resourceModels: [{grade: 0, ranges: [{name: cpu, min: '0', max: '1'}]}, {grade: 0, ranges: [{name: memory, min: '1', max: '" + most + "'}]}, {grade: 2, ranges: []}]}", []string{"spec.resourceModels[1].grade: Duplicate value", "spec.resourceModels[1].ranges[0].name: Invalid value", "spec.resourceModels[2].ranges: Invalid value"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: tc.name}, Spec: *decode[clusterv1alpha1.ClusterSpec](t, tc.spec)}
			errs, _ := validate.Cluster(c, nil)
			if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s\n%v", diff, errs.ToAggregate())
			}
			for _, e := range errs {
				if strings.Contains(e.Error(), "u:p@") {
					t.Errorf("the error repeats a password: %v", e)
				}
			}
		})
	}
}

func TestDefaultCluster(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: *decode[clusterv1alpha1.ClusterSpec](t, "{syncMode: Push, zone: z, taints: [{key: a, effect: NoExecute}, {key: b, effect: NoSchedule}]}")}
	validate.DefaultCluster(c, true, now)
	c.Spec.Zone = "z" // somebody applies it again
	if validate.DefaultCluster(c, false, now); c.Spec.Zone != "" || !cmp.Equal(c.Spec.Zones, []string{"z"}) {
		t.Errorf("zones = %q, %q", c.Spec.Zone, c.Spec.Zones)
	}
	if at := c.Spec.Taints[0].TimeAdded; at == nil || !at.Time.Equal(now.Truncate(time.Second)) || c.Spec.Taints[1].TimeAdded != nil {
		t.Errorf("taints = %v", c.Spec.Taints)
	}
	if len(c.Spec.ResourceModels) != 9 {
		t.Errorf("%d models, want 9", len(c.Spec.ResourceModels))
	}
	if errs, _ := validate.Cluster(c, nil); len(errs) > 0 {
		t.Errorf("what was defaulted is refused: %v", errs.ToAggregate())
	}
	before := c.DeepCopy()
	validate.DefaultCluster(c, false, now.Add(time.Hour))
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("an update dates taints anew:\n%s", diff)
	}
	for _, create := range []bool{true, false} {
		c.Spec = *decode[clusterv1alpha1.ClusterSpec](t, "{syncMode: Push, resourceModels: [{grade: 1, ranges: [{name: cpu, min: '2', max: '3'}]}, {grade: 0, ranges: [{name: cpu, min: '1', max: '2'}]}]}")
		validate.DefaultCluster(c, create, now)
		if errs, _ := validate.Cluster(c, nil); len(errs) > 0 {
			t.Errorf("what was standardised is refused: %v", errs.ToAggregate())
		}
	}
	c.Spec.ResourceModels = nil
	if validate.DefaultCluster(c, false, now); c.Spec.ResourceModels != nil {
		t.Error("models that were taken away are back")
	}
}

func TestWork(t *testing.T) {
	w := decode[workv1alpha1.Work](t, `
metadata: {namespace: karmada-es-a, name: w, labels: {work.karmada.io/permanent-id: new-id}}
spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: u, labels: {a: b}}, status: {x: y}}]}}`)
	validate.DefaultWork(w, nil)
	want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"resourcetemplate.karmada.io/managed-annotations":"resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels","resourcetemplate.karmada.io/managed-labels":"a,work.karmada.io/permanent-id"},"labels":{"a":"b","work.karmada.io/permanent-id":"new-id"},"name":"c"}}`
	if got := string(w.Spec.Workload.Manifests[0].Raw); strings.TrimSpace(got) != want {
		t.Errorf("manifest\n got %s\nwant %s", got, want)
	}
	once := w.DeepCopy()
	validate.DefaultWork(w, nil)
	if diff := cmp.Diff(once, w); diff != "" {
		t.Errorf("defaulting twice is not defaulting once:\n%s", diff)
	}
	if errs := validate.Work(w); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	w.Spec.Workload.Manifests[0].Raw = []byte(`[]`)
	w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{})
	w.Spec.Workload.Manifests[1].Raw = []byte(`{"kind":"A"}`)
	errs := validate.Work(w)
	wantFields := []string{"spec.workload.manifests[0]: Invalid value", "spec.workload.manifests[1].apiVersion: Required value", "spec.workload.manifests[1].metadata.name: Required value"}
	if diff := cmp.Diff(wantFields, fields(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	broken := w.DeepCopy()
	validate.DefaultWork(w, once)
	if diff := cmp.Diff(broken.Spec.Workload.Manifests[0], w.Spec.Workload.Manifests[0]); diff != "" {
		t.Errorf("a manifest that is no object is changed:\n%s", diff)
	}
}

// Errors about addresses do not repeat what may be a credential in them.
func TestAddressesAreNotRepeated(t *testing.T) {
	for _, address := range []string{
		"https://user:HUNTER2@x", "https:///?token=HUNTER2", "https://x?token=HUNTER2", "https://x?token=HUNTER2#a", "https://x#HUNTER2", "https://x/%zzHUNTER2",
	} {
		c := decode[clusterv1alpha1.Cluster](t, "{metadata: {name: a}, spec: {syncMode: Push}}")
		c.Spec.APIEndpoint = address
		hooks := decode[configv1alpha1.ResourceInterpreterWebhookConfiguration](t, "{webhooks: [{name: a.b.c, interpreterContextVersions: [v1alpha1]}]}")
		hooks.Webhooks[0].ClientConfig.URL = &address
		errs, _ := validate.Cluster(c, nil)
		more, _ := validate.Webhooks(hooks)
		if len(errs) != 1 || len(more) != 1 {
			t.Errorf("%s: errors %v and %v, want one each", address, errs, more)
		}
		for _, e := range append(errs, more...) {
			if strings.Contains(e.Error(), "HUNTER2") {
				t.Errorf("%s is repeated: %v", address, e)
			}
		}
	}
}

func TestIdentity(t *testing.T) {
	const label = "id"
	with := func(id string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{}
		if id != "" {
			cm.Labels = map[string]string{label: id}
		}
		return cm
	}
	cases := map[string]struct {
		own      bool
		obj, old *corev1.ConfigMap
		want     string
		refused  bool
	}{
		"a new object gets an id":                               {obj: with(""), want: "new-id"},
		"a new object keeps the id that it brings":              {obj: with("a"), want: "a"},
		"a new object of a kind that gives ids gets its own":    {own: true, obj: with("a"), want: "new-id"},
		"a forgotten id comes back":                             {obj: with(""), old: with("a"), want: "a"},
		"an id stays":                                           {own: true, obj: with("a"), old: with("a"), want: "a"},
		"an object from before there were ids gets one":         {obj: with(""), old: with(""), want: "new-id"},
		"an object from before there were ids may be given one": {obj: with("a"), old: with(""), want: "a"},
		"but not in a kind that gives ids":                      {own: true, obj: with("a"), old: with(""), want: "new-id"},
		"another id is refused":                                 {obj: with("b"), old: with("a"), want: "b", refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old metav1.Object
			if tc.old != nil {
				old = tc.old
			}
			identity := validate.Identity{Label: label, Own: tc.own}
			identity.Give(tc.obj, old, newID)
			errs := identity.Check(tc.obj, old)
			if got := tc.obj.Labels[label]; got != tc.want || (len(errs) > 0) != tc.refused {
				t.Errorf("id %q, errors %v; want %q, refused %t", got, errs, tc.want, tc.refused)
			}
			if nobody := (validate.Identity{}); nobody.Check(tc.obj, old) != nil {
				t.Error("a kind without ids checks one")
			}
		})
	}
}

func TestBinding(t *testing.T) {
	b := decode[workv1alpha2.ResourceBinding](t, `
metadata: {namespace: shop, name: b, annotations: {resourcebinding.karmada.io/dependencies: "{}"}}
spec: {resource: {apiVersion: v1, kind: Pod, name: p}, components: [{name: a, replicas: 1}, {name: a, replicas: 1}, {name: "", replicas: 1}]}`)
	errs := validate.Binding(b)
	want := []string{"metadata.annotations[resourcebinding.karmada.io/dependencies]: Invalid value", "spec.components[1].name: Duplicate value", "spec.components[2].name: Required value"}
	if diff := cmp.Diff(want, fields(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}
