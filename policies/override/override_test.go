package override_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func deployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"replicas": int64(2),
			"template": map[string]any{"spec": map[string]any{
				"initContainers": []any{map[string]any{"name": "init", "image": "busybox:1"}},
				"containers": []any{
					map[string]any{"name": "app", "image": "nginx:1.25", "args": []any{"-a", "-b", "-a"}},
					map[string]any{"name": "side", "image": "quay.io/side/car@sha256:" + strings.Repeat("0", 64)},
				},
			}},
		},
	}}
}

// of returns an object of another kind than Deployment, in YAML.
func of(text string) *unstructured.Unstructured {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		panic(err)
	}
	return obj
}

func configMap(key, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "conf"},
		"data": map[string]any{key: value},
	}}
}

// overriders reads them as users write them.
func overriders(text string) policyv1alpha1.Overriders {
	var out policyv1alpha1.Overriders
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

// policyOf returns the OverridePolicy shop/op with one rule for every cluster.
func policyOf(o policyv1alpha1.Overriders) *policyv1alpha1.OverridePolicy {
	return &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "op"},
		Spec:       policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: o}}},
	}
}

func east() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
}

// change is a case of one rule that is applied to one object.
type change struct {
	obj  *unstructured.Unstructured
	with string
	// want are the values at JSON pointers afterwards.
	want map[string]any
	// err is the error without the name of the policy and of the rule.
	err string
}

func (tc change) run(t *testing.T) {
	t.Helper()
	_, err := apply(tc.obj, east(), []policyv1alpha1.Override{policyOf(overriders(tc.with))})
	if got := strings.TrimPrefix(message(err), "override policy shop/op: overrideRules[0]."); got != tc.err {
		t.Fatalf("error\n got %s\nwant %s", got, tc.err)
	}
	for path, want := range tc.want {
		if diff := cmp.Diff(want, lookup(tc.obj.Object, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func lookup(node any, path string) any {
	for part := range strings.SplitSeq(path[1:], "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch parent := node.(type) {
		case map[string]any:
			node = parent[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(parent) {
				return nil
			}
			node = parent[i]
		default:
			return nil
		}
	}
	return node
}

// TestOrder says which overrides apply, in which order: what comes later wins.
// Each adds its name to the label "by" in the way of its case.
func TestOrder(t *testing.T) {
	const (
		cop  = "{kind: ClusterOverridePolicy, metadata: {name: %s}, spec: %s}"
		op   = "{kind: OverridePolicy, metadata: {namespace: shop, name: %s}, spec: %s}"
		all  = "overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {by: %s}}]}}]"
		kind = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], "
		name = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], "
		app  = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}], "
	)
	by := func(format, name, selectors string) string {
		return fmt.Sprintf(format, name, "{"+selectors+fmt.Sprintf(all, name)+"}")
	}
	on := func(name, clusters string) string {
		return fmt.Sprintf(op, name, "{overrideRules: [{targetCluster: "+clusters+", overriders: {labelsOverrider: [{operator: add, value: {by: "+name+"}}]}}]}")
	}
	cases := map[string]struct {
		overrides []string
		wantBy    any
		// wantApplied are the names in both records.
		wantApplied []string
	}{
		"none": {},
		"the namespace beats the fleet, whatever the names and selectors": {[]string{by(op, "a", ""), by(cop, "z", name)}, "a", []string{"cluster z", "a"}},
		"by name beats by labels":                              {[]string{by(op, "a", name), by(op, "z", app)}, "a", []string{"a", "z"}},
		"by labels beats all of the kind":                      {[]string{by(op, "a", app), by(op, "z", kind)}, "a", []string{"a", "z"}},
		"all of the kind is as good as all":                    {[]string{by(op, "a", kind), by(op, "z", "")}, "z", []string{"a", "z"}},
		"the best selector of a policy counts":                 {[]string{by(op, "z", app), by(op, "a", "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps/v1, kind: Deployment, name: web}], ")}, "a", []string{"a", "z"}},
		"then the later name":                                  {[]string{by(op, "z", ""), by(op, "a", "")}, "z", []string{"a", "z"}},
		"of the fleet, too, the more specific one wins":        {[]string{by(cop, "a", name), by(cop, "z", "")}, "a", []string{"cluster a", "cluster z"}},
		"another namespace does not count":                     {overrides: []string{"{kind: OverridePolicy, metadata: {namespace: bank, name: a}, spec: {" + fmt.Sprintf(all, "a") + "}}"}},
		"another kind does not count":                          {overrides: []string{by(op, "a", "resourceSelectors: [{apiVersion: apps/v1, kind: DaemonSet}], ")}},
		"one that is being deleted does not count":             {overrides: []string{"{kind: OverridePolicy, metadata: {namespace: shop, name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {" + fmt.Sprintf(all, "a") + "}}"}},
		"selectors look at the template as it came":            {[]string{by(cop, "a", ""), by(op, "z", "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {by: a}}}], ")}, "a", []string{"cluster a"}},
		"the deprecated fields are a rule":                     {[]string{fmt.Sprintf(op, "a", "{overriders: {labelsOverrider: [{operator: add, value: {by: a}}]}}")}, "a", []string{"a"}},
		"the deprecated fields pick clusters":                  {overrides: []string{fmt.Sprintf(op, "a", "{targetCluster: {clusterNames: [west]}, overriders: {labelsOverrider: [{operator: add, value: {by: a}}]}}")}},
		"rules beat the deprecated fields":                     {[]string{fmt.Sprintf(op, "a", "{overriders: {labelsOverrider: [{operator: add, value: {by: old}}]}, "+fmt.Sprintf(all, "new")+"}")}, "new", []string{"a"}},
		"rules of a policy run in their order":                 {[]string{fmt.Sprintf(op, "a", "{overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {by: one}}]}}, {overriders: {labelsOverrider: [{operator: add, value: {by: two}}]}}]}")}, "two", []string{"a", "a"}},
		"labels come before fields and those before plaintext": {[]string{fmt.Sprintf(op, "a", "{overrideRules: [{overriders: {plaintext: [{path: /metadata/labels/by, operator: replace, value: '[9]'}], fieldOverrider: [{fieldPath: /metadata/labels/by, json: [{subPath: /0, operator: replace, value: 2}]}], labelsOverrider: [{operator: add, value: {by: '[1]'}}]}}]}")}, "[9]", []string{"a"}},
		"its name picks a cluster":                             {[]string{on("a", "{clusterNames: [east, west]}")}, "a", []string{"a"}},
		"another name does not":                                {overrides: []string{on("a", "{clusterNames: [west]}")}},
		"an excluded cluster is left out":                      {overrides: []string{on("a", "{clusterNames: [east], exclude: [east]}")}},
		"its labels pick a cluster":                            {[]string{on("a", "{labelSelector: {matchLabels: {tier: gold}}}")}, "a", []string{"a"}},
		"its region picks a cluster":                           {[]string{on("a", "{fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}")}, "a", []string{"a"}},
		"its zones pick a cluster":                             {[]string{on("a", "{fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [eu-b]}]}}")}, "a", []string{"a"}},
		"its provider picks a cluster":                         {overrides: []string{on("a", "{fieldSelector: {matchExpressions: [{key: provider, operator: In, values: [x]}]}}")}},
		"all parts of what picks clusters must agree":          {overrides: []string{on("a", "{clusterNames: [east], labelSelector: {matchLabels: {tier: tin}}}")}},
		"a selector that cannot be parsed picks no cluster":    {overrides: []string{on("a", "{labelSelector: {matchExpressions: [{key: tier, operator: Near}]}}")}},
	}
	cluster := east()
	cluster.Labels = map[string]string{"tier": "gold"}
	cluster.Spec.Region, cluster.Spec.Zones = "eu", []string{"eu-a", "eu-b"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var overrides []policyv1alpha1.Override
			for _, text := range tc.overrides {
				overrides = append(overrides, overrideOf(t, text))
			}
			obj := deployment()
			applied, err := apply(obj, cluster, overrides)
			if err != nil {
				t.Fatal(err)
			}
			if got := lookup(obj.Object, "/metadata/labels/by"); got != tc.wantBy {
				t.Errorf("the last one was %v, want %v", got, tc.wantBy)
			}
			if diff := cmp.Diff(tc.wantApplied, recorded(t, applied)); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClusterScoped: only cluster-wide overrides reach what has no namespace.
func TestClusterScoped(t *testing.T) {
	const rule = "spec: {overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {by: it}}]}}]}"
	obj := of("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	r := selector.ResourceOf(obj)
	for text, want := range map[string]bool{
		"{kind: ClusterOverridePolicy, metadata: {name: a}, " + rule + "}":           true,
		"{kind: OverridePolicy, metadata: {name: a, namespace: shop}, " + rule + "}": false,
	} {
		if got := override.Selects(overrideOf(t, text), r); got != want {
			t.Errorf("%s selects the namespace: %v, want %v", text, got, want)
		}
	}
}

// TestErrorNamesThePlace: of the deprecated fields, and of a later rule.
func TestErrorNamesThePlace(t *testing.T) {
	const faulty = "{plaintext: [{path: /spec/gone, operator: remove}]}"
	cases := map[string]string{
		"{kind: ClusterOverridePolicy, metadata: {name: a}, spec: {overriders: " + faulty + "}}":                                                "override policy a: plaintext[0] at /spec/gone: nothing is there: narrow the rule to what has it, or add it first",
		"{kind: OverridePolicy, metadata: {namespace: shop, name: a}, spec: {overrideRules: [{overriders: {}}, {overriders: " + faulty + "}]}}": "override policy shop/a: overrideRules[1].plaintext[0] at /spec/gone: nothing is there: narrow the rule to what has it, or add it first",
	}
	for text, want := range cases {
		_, err := apply(deployment(), east(), []policyv1alpha1.Override{overrideOf(t, text)})
		if got := message(err); got != want {
			t.Errorf("error\n got %s\nwant %s", got, want)
		}
	}
}

func overrideOf(t *testing.T, text string) policyv1alpha1.Override {
	t.Helper()
	var o policyv1alpha1.Override = &policyv1alpha1.OverridePolicy{}
	if strings.Contains(text, "kind: ClusterOverridePolicy") {
		o = &policyv1alpha1.ClusterOverridePolicy{}
	}
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// recorded reads the names back from the annotations.
func recorded(t *testing.T, a override.Applied) []string {
	t.Helper()
	var out []string
	for _, key := range []string{policyv1alpha1.AppliedClusterOverrides, policyv1alpha1.AppliedOverrides} {
		text, ok := a.Annotations()[key]
		if !ok {
			continue
		}
		var items []override.Item
		if err := json.Unmarshal([]byte(text), &items); err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			if key == policyv1alpha1.AppliedClusterOverrides {
				i.PolicyName = "cluster " + i.PolicyName
			}
			out = append(out, i.PolicyName)
		}
	}
	return out
}

// TestMeans: which clusters a policy is about, and whether a change of a
// cluster makes it another one for the policy.
func TestMeans(t *testing.T) {
	const format = "{kind: OverridePolicy, metadata: {name: a, namespace: shop}, spec: {%s}}"
	cluster := func(name, tier string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}}
	}
	cases := map[string]struct {
		spec string
		// means reports whether it means east as it is.
		means bool
		// regroups reports whether that changes once east becomes gold.
		regroups bool
	}{
		"a rule for every cluster":      {"overrideRules: [{overriders: {}}]", true, false},
		"a rule for another cluster":    {"overrideRules: [{overriders: {}, targetCluster: {clusterNames: [west]}}]", false, false},
		"one of two rules":              {"overrideRules: [{overriders: {}, targetCluster: {clusterNames: [west]}}, {overriders: {}, targetCluster: {clusterNames: [east]}}]", true, false},
		"a rule for gold":               {"overrideRules: [{overriders: {}, targetCluster: {labelSelector: {matchLabels: {tier: gold}}}}]", false, true},
		"a rule for tin":                {"overrideRules: [{overriders: {}, targetCluster: {labelSelector: {matchLabels: {tier: tin}}}}]", true, true},
		"a rule for tin, one for gold":  {"overrideRules: [{overriders: {}, targetCluster: {labelSelector: {matchLabels: {tier: tin}}}}, {overriders: {}, targetCluster: {labelSelector: {matchLabels: {tier: gold}}}}]", true, true},
		"a rule for gold named west":    {"overrideRules: [{overriders: {}, targetCluster: {clusterNames: [west], labelSelector: {matchLabels: {tier: gold}}}}]", false, false},
		"the deprecated fields":         {"targetCluster: {labelSelector: {matchLabels: {tier: tin}}}", true, true},
		"the deprecated fields for all": {"overriders: {}", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := overrideOf(t, fmt.Sprintf(format, tc.spec))
			got := []bool{override.Means(o, cluster("east", "tin")), override.Regroups(o, cluster("east", "tin"), cluster("east", "gold"))}
			if diff := cmp.Diff([]bool{tc.means, tc.regroups}, got); diff != "" {
				t.Errorf("means east, regroups it (-want +got):\n%s", diff)
			}
		})
	}
}

// apply changes obj as those of the overrides say that mean it.
func apply(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override) (override.Applied, error) {
	return override.Matching(overrides, selector.ResourceOf(obj)).Apply(obj, cluster)
}
