package validate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// judged completes and checks an object as it is written on creation.
func judged(t *testing.T, text string, facts validate.Facts) (errs, warnings []string) {
	t.Helper()
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatal(err)
	}
	for _, k := range validate.Kinds() {
		if k.Kind != head.Kind {
			continue
		}
		obj := k.New()
		if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
			t.Fatal(err)
		}
		k.Identity.Give(obj, nil, newID)
		k.Default(obj)
		list, warnings := k.Check(obj, nil, facts)
		return fields(list), warnings
	}
	t.Fatalf("no kind %q", head.Kind)
	return nil, nil
}

func TestKinds(t *testing.T) {
	quota := func(spec string) string {
		return "kind: FederatedResourceQuota\nmetadata: {namespace: shop, name: q}\nspec: " + spec
	}
	taint := func(spec string) string {
		return "kind: ClusterTaintPolicy\nmetadata: {name: t}\nspec: " + spec
	}
	hooks := func(hook string) string {
		return "kind: ResourceInterpreterWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [" + hook + "]"
	}
	const hook = "name: a.example.org, clientConfig: {url: 'https://x/y'}, interpreterContextVersions: [v1alpha1]"
	scripts := func(spec string) string {
		return "kind: ResourceInterpreterCustomization\nmetadata: {name: c}\nspec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: " + spec + "}"
	}
	cases := map[string]struct {
		text     string
		facts    validate.Facts
		errs     []string
		warnings []string // what they begin with
	}{
		"a quota":                       {text: quota("{overall: {cpu: '10', nvidia.com/gpu: 1}, staticAssignments: [{clusterName: a, hard: {cpu: '4'}}, {clusterName: b, hard: {cpu: '6'}}]}")},
		"a quota whose shares are more": {text: quota("{overall: {cpu: '10', memory: 1Gi}, staticAssignments: [{clusterName: a, hard: {cpu: '4', memory: 1Gi}}, {clusterName: b, hard: {cpu: 6001m}}]}"), errs: []string{"spec.overall[cpu]: Invalid value"}},
		"a quota with a share of what it does not limit": {text: quota("{overall: {cpu: '10'}, staticAssignments: [{clusterName: a, hard: {memory: 1Gi}}]}"), errs: []string{"spec.staticAssignments[0].hard[memory]: Invalid value"}},
		"a quota with bad names and amounts": {text: quota("{overall: {'a b': 1, cpu: '-1', gpu: 1, pods: 500m, hugepages-2Mi: 1}, staticAssignments: [{clusterName: EU, hard: {}}, {clusterName: '', hard: {cpu: '-2'}}]}"),
			errs:     []string{"spec.overall[a b]: Invalid value", "spec.overall[cpu]: Invalid value", "spec.overall[gpu]: Invalid value", "spec.overall[pods]: Invalid value", "spec.staticAssignments[0].clusterName: Invalid value", "spec.staticAssignments[1].clusterName: Required value", "spec.staticAssignments[1].hard[cpu]: Invalid value"},
			warnings: []string{"spec.overall[pods]: "}},
		"a quota that counts nothing": {text: quota("{overall: {requests.cpu: 1, limits.cpu: 1, requests.storage: 1, count/deployments.apps: 1}, staticAssignments: [{clusterName: a, hard: {}}, {clusterName: a, hard: {}}]}"),
			warnings: []string{"spec.staticAssignments[1].clusterName: ", "spec.overall[count/deployments.apps]: ", "spec.overall[limits.cpu]: ", "spec.overall[requests.storage]: "}},

		"a taint policy":                      {text: taint("{addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False']}], taints: [{key: a, effect: NoSchedule}]}")},
		"a taint policy that evicts":          {text: taint("{addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False']}], taints: [{key: a, effect: NoExecute}]}"), errs: []string{"spec.taints[0].effect: Forbidden"}},
		"a taint policy that may evict":       {text: taint("{addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False']}], taints: [{key: a, effect: NoExecute}]}"), facts: validate.Facts{AllowNoExecuteTaints: true}},
		"a taint policy without taints":       {text: taint("{addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False']}], taints: []}"), errs: []string{"spec.taints: Required value"}},
		"a taint policy that is never in use": {text: taint("{taints: [{key: a, effect: PreferNoSchedule}]}"), warnings: []string{"spec.taints[0].effect: ", "spec: without addOnConditions"}},
		"a taint policy that makes no sense": {text: taint("{targetClusters: {fieldSelector: {matchExpressions: [{key: x, operator: In, values: [a]}]}}, addOnConditions: [{conditionType: '', operator: Near, statusValues: [Maybe]}], removeOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: []}], taints: [{key: a b, effect: Never, value: a b}, {key: c, effect: NoSchedule}, {key: c, value: d, effect: NoSchedule}]}"),
			errs: []string{"spec.addOnConditions[0].operator: Unsupported value", "spec.taints[2]: Duplicate value"},
			warnings: []string{"spec.targetClusters.fieldSelector.matchExpressions[0].key: Unsupported value", "spec.addOnConditions[0].conditionType: ", "spec.addOnConditions[0].statusValues[0]: ", "spec.removeOnConditions[0].statusValues: ",
				"spec.taints[0].key: Invalid value", "spec.taints[0].value: Invalid value", "spec.taints[0].effect: clusters do not take Never"}},

		"a webhook":                 {text: hooks("{" + hook + ", timeoutSeconds: 30, rules: [{operations: [Retain, Prune], apiGroups: ['*'], apiVersions: [v1], kinds: [A, B]}]}")},
		"a webhook of a service":    {text: hooks("{name: a.example.org, clientConfig: {service: {namespace: a, name: b, path: /c, port: 443}}, interpreterContextVersions: [v1alpha1], rules: [{operations: ['*'], apiGroups: [''], apiVersions: [v1], kinds: ['*']}]}")},
		"two webhooks of one name":  {text: hooks("{" + hook + "}, {" + hook + "}"), errs: []string{"webhooks[1].name: Duplicate value"}, warnings: []string{"webhooks[0].rules: ", "webhooks[1].rules: "}},
		"a webhook that is nowhere": {text: hooks("{name: a.example.org, clientConfig: {}, interpreterContextVersions: [v1alpha1]}"), errs: []string{"webhooks[0].clientConfig: Required value"}, warnings: []string{"webhooks[0].rules: "}},
		"a webhook that makes no sense": {text: hooks("{name: a, clientConfig: {url: 'http://u:p@x'}, timeoutSeconds: 31, interpreterContextVersions: [v2], rules: [{operations: [Guess], apiGroups: ['*', a], apiVersions: [''], kinds: []}]}"),
			errs: []string{"webhooks[0].name: Invalid value", "webhooks[0].timeoutSeconds: Invalid value", "webhooks[0].clientConfig.url: Invalid value", "webhooks[0].rules[0].operations[0]: Unsupported value",
				"webhooks[0].rules[0].apiGroups: Invalid value", "webhooks[0].rules[0].apiVersions[0]: Required value", "webhooks[0].rules[0].kinds: Required value", "webhooks[0].interpreterContextVersions: Invalid value"}},
		"a webhook of half a service": {text: hooks("{name: a.example.org, clientConfig: {service: {namespace: '', name: '', path: c, port: 0}}, interpreterContextVersions: [v1alpha1, v1alpha1]}"),
			errs:     []string{"webhooks[0].clientConfig.service.name: Required value", "webhooks[0].clientConfig.service.namespace: Required value", "webhooks[0].clientConfig.service.path: Invalid value", "webhooks[0].clientConfig.service.port: Invalid value", "webhooks[0].interpreterContextVersions[1]: Duplicate value"},
			warnings: []string{"webhooks[0].rules: "}},

		"a customization":              {text: scripts("{retention: {luaScript: 'function Retain(a, b) return a end'}}")},
		"a customization of nothing":   {text: scripts("{}"), warnings: []string{"spec.customizations: "}},
		"a script without text":        {text: scripts("{retention: {luaScript: ' '}}"), warnings: []string{"spec.customizations.retention.luaScript: does not define the function Retain"}},
		"a script that is no Lua":      {text: scripts("{retention: {luaScript: 'func Retain() {}'}}"), errs: []string{"spec.customizations.retention.luaScript: Invalid value"}},
		"a script that is too long":    {text: scripts("{retention: {luaScript: 'Retain = 1 --" + strings.Repeat("-", lua.MaxSource) + "'}}"), errs: []string{"spec.customizations.retention.luaScript: Invalid value"}},
		"a script of another function": {text: scripts("{retention: {luaScript: 'function Retainer() end'}}"), warnings: []string{"spec.customizations.retention.luaScript: does not define the function Retain"}},
		"a script that another has": {text: scripts("{retention: {luaScript: 'Retain = 1'}, replicaResource: {luaScript: 'GetReplicas = 1'}}"), errs: []string{"spec.customizations.retention: Forbidden"},
			facts: validate.Facts{Customizations: []configv1alpha1.ResourceInterpreterCustomization{*decode[configv1alpha1.ResourceInterpreterCustomization](t, "{metadata: {name: other}, spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {retention: {luaScript: x}}}}")}}},
		"dependencies that another has, too, and a script that only one may have": {text: scripts("{dependencyInterpretation: {luaScript: 'GetDependencies = 1'}, retention: {luaScript: 'Retain = 1'}}"), errs: []string{"spec.customizations.retention: Forbidden"},
			facts: validate.Facts{Customizations: []configv1alpha1.ResourceInterpreterCustomization{*decode[configv1alpha1.ResourceInterpreterCustomization](t, "{metadata: {name: other}, spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {dependencyInterpretation: {luaScript: x}, retention: {luaScript: x}}}}")}}},
		"a script that it has itself, or that is for another kind": {text: scripts("{retention: {luaScript: 'Retain = 1'}}"), facts: validate.Facts{Customizations: []configv1alpha1.ResourceInterpreterCustomization{
			*decode[configv1alpha1.ResourceInterpreterCustomization](t, "{metadata: {name: c}, spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {retention: {luaScript: x}}}}"),
			*decode[configv1alpha1.ResourceInterpreterCustomization](t, "{metadata: {name: other}, spec: {target: {apiVersion: apps/v1, kind: DaemonSet}, customizations: {retention: {luaScript: x}}}}"),
		}}},
		"a customization of no kind": {text: "kind: ResourceInterpreterCustomization\nmetadata: {name: c}\nspec: {target: {apiVersion: a/b/c, kind: ''}, customizations: {retention: {luaScript: 'Retain = 1'}}}", warnings: []string{`spec.target.apiVersion: "a/b/c" is no version`, "spec.target.kind: is empty"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs, warnings := judged(t, tc.text, tc.facts)
			if diff := cmp.Diff(tc.errs, errs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			begin(t, tc.warnings, warnings)
		})
	}
}

// begin checks what warnings begin with, that each goes on, and their number.
func begin(t *testing.T, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("warnings: %q, want %q", got, want)
		return
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) || len(got[i]) <= len(want[i]) {
			t.Errorf("warning %q, want %q", got[i], want[i])
		}
	}
}

// Whatever fits the type of a kind is judged without a panic, is completed once
// and for all, and does not become wrong by being completed.
func FuzzKinds(f *testing.F) {
	for i, k := range validate.Kinds() {
		for _, seed := range []string{
			"{}", `{"spec":{}}`, `{"metadata":{"labels":{"a":"b"},"namespace":"n","name":"x"},"spec":{"resourceSelectors":[{}],"placement":{"clusterAffinity":{},"clusterAffinities":[{},{"overflowAffinities":[{}]}],"spreadConstraints":[{}],"replicaScheduling":{"weightPreference":{"staticWeightList":[{}]}},"workloadAffinity":{"affinity":{},"antiAffinity":{}}},"failover":{"application":{"purgeMode":"Gracefully"},"cluster":{}},"dependentOverrides":[""]}}`,
			`{"spec":{"overrideRules":[{"targetCluster":{"fieldSelector":{"matchExpressions":[{}]}},"overriders":{"plaintext":[{}],"imageOverrider":[{"predicate":{}}],"fieldOverrider":[{"json":[{}]}],"labelsOverrider":[{}]}}]}}`,
			`{"spec":{"overall":{"cpu":"1e99999"},"staticAssignments":[{"hard":{"cpu":"9E"}}],"taints":[{}],"addOnConditions":[{}]}}`,
			`{"spec":{"maxReplicas":1,"metrics":[{"type":"Resource"}],"behavior":{"scaleUp":{}},"rules":[{"schedule":"TZ=0","timeZone":"../x","http":{"paths":[{}]}}],"types":["a"],"tls":[{}]}}`,
			`{"webhooks":[{"clientConfig":{"url":"::"},"rules":[{}]}],"spec":{"workload":{"manifests":[{"a":1},{}]},"components":[{},{}],"failover":{"application":{}}}}`,
		} {
			f.Add(i, []byte(seed))
		}
		_ = k
	}
	f.Fuzz(func(t *testing.T, kind int, content []byte) {
		kinds := validate.Kinds()
		k := kinds[((kind%len(kinds))+len(kinds))%len(kinds)]
		obj := k.New()
		if json.Unmarshal(content, obj) != nil {
			return
		}
		k.Identity.Give(obj, nil, newID)
		before, _ := k.Check(obj.DeepCopyObject().(validate.Object), nil, validate.Facts{})
		k.Default(obj)
		once, err := json.Marshal(obj)
		if err != nil {
			return // a value that its own type cannot write
		}
		after, _ := k.Check(obj, obj.DeepCopyObject().(validate.Object), validate.Facts{})
		if len(before) == 0 && len(after) > 0 && k.Kind != "Work" { // a Work's manifests are completed as templates, and checked after
			t.Errorf("%s is valid, and completed it is not: %v\n%s", k.Kind, after.ToAggregate(), once)
		}
		k.Default(obj)
		twice, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if string(once) != string(twice) {
			t.Errorf("%s: completed twice is not completed once:\n%s\n%s", k.Kind, once, twice)
		}
	})
}
