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
	ingress := func(spec string) string {
		return "kind: MultiClusterIngress\nmetadata: {namespace: shop, name: i}\nspec: " + spec
	}
	path := func(p string) string {
		return ingress("{rules: [{http: {paths: [{" + p + ", backend: {service: {name: web, port: {number: 80}}}}]}}]}")
	}
	service := func(spec string) string {
		return "kind: MultiClusterService\nmetadata: {namespace: shop, name: s}\nspec: " + spec
	}
	scaler := func(spec string) string {
		return "kind: FederatedHPA\nmetadata: {namespace: shop, name: a}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, " + spec + "}"
	}
	cron := func(target, rules string) string {
		return "kind: CronFederatedHPA\nmetadata: {namespace: shop, name: c}\nspec: {scaleTargetRef: {" + target + "}, rules: [" + rules + "]}"
	}
	const workload, autoscaler = "apiVersion: apps/v1, kind: Deployment, name: web", "apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: web"
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
			errs: []string{"spec.overall[a b]: Invalid value", "spec.overall[cpu]: Invalid value", "spec.overall[gpu]: Invalid value", "spec.overall[pods]: Invalid value", "spec.staticAssignments[0].clusterName: Invalid value", "spec.staticAssignments[1].clusterName: Required value", "spec.staticAssignments[1].hard[cpu]: Invalid value"}},
		"a quota that counts nothing": {text: quota("{overall: {requests.cpu: 1, limits.cpu: 1, requests.storage: 1}, staticAssignments: [{clusterName: a, hard: {}}, {clusterName: a, hard: {}}]}"),
			warnings: []string{"spec.staticAssignments[1].clusterName: ", "spec.overall[limits.cpu]: ", "spec.overall[requests.storage]: "}},

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

		"an ingress":                                 {text: ingress("{ingressClassName: nginx, tls: [{hosts: ['*.example.org']}], rules: [{host: '*.example.org', http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}, {pathType: ImplementationSpecific, backend: {resource: {apiGroup: a.b, kind: C, name: d}}}]}}]}")},
		"an ingress of nothing":                      {text: ingress("{}"), errs: []string{"spec: Invalid value"}},
		"an ingress without a type of path":          {text: path("path: /a"), errs: []string{"spec.rules[0].http.paths[0].pathType: Required value"}},
		"an ingress with an unknown type of path":    {text: path("path: /a, pathType: Near"), errs: []string{"spec.rules[0].http.paths[0].pathType: Unsupported value"}},
		"an ingress with a relative path":            {text: path("path: a, pathType: Exact"), errs: []string{"spec.rules[0].http.paths[0].path: Invalid value"}},
		"an ingress with a path that leads upwards":  {text: path("path: /a/../b%2f/.., pathType: Prefix"), errs: []string{"spec.rules[0].http.paths[0].path: Invalid value", "spec.rules[0].http.paths[0].path: Invalid value", "spec.rules[0].http.paths[0].path: Invalid value"}},
		"an ingress with hosts that are none":        {text: ingress("{tls: [{hosts: [a_b]}], rules: [{host: 1.2.3.4}, {host: 'a.*'}, {http: {paths: []}}]}"), errs: []string{"spec.rules[0].host: Invalid value", "spec.rules[1].host: Invalid value", "spec.rules[2].http.paths: Required value", "spec.tls[0].hosts[0]: Invalid value"}},
		"an ingress with backends that are none":     {text: ingress("{defaultBackend: {}, rules: [{http: {paths: [{pathType: Exact, path: /, backend: {service: {name: '', port: {}}}}, {pathType: Exact, path: /, backend: {service: {name: A, port: {name: x_y, number: 1}}}}, {pathType: Exact, path: /, backend: {resource: {kind: '', name: a/b}}}]}}]}"), errs: []string{"spec.defaultBackend: Required value", "spec.rules[0].http.paths[0].backend.service.name: Required value", "spec.rules[0].http.paths[0].backend.service.port: Required value", "spec.rules[0].http.paths[1].backend.service.name: Invalid value", "spec.rules[0].http.paths[1].backend.service.port: Invalid value", "spec.rules[0].http.paths[2].backend.resource.kind: Required value", "spec.rules[0].http.paths[2].backend.resource.name: Invalid value"}},
		"a service":                                  {text: service("{types: [CrossCluster], ports: [{name: a, port: 80}, {name: b, port: 81}], providerClusters: [{name: a}], consumerClusters: [{name: b}]}")},
		"a service of two types and bad ports":       {text: service("{types: [CrossCluster, Magic], ports: [{name: a, port: 0}, {name: a, port: 65536}], providerClusters: [{name: A}], consumerClusters: [{name: ''}]}"), errs: []string{"spec.types: Invalid value", "spec.types[1]: Unsupported value", "spec.ports[0].port: Invalid value", "spec.ports[1].port: Invalid value", "spec.ports[1].name: Duplicate value", "spec.providerClusters[0].name: Invalid value", "spec.consumerClusters[0].name: Required value"}},
		"a service in the old way":                   {text: service("{types: [LoadBalancer], range: {clusterNames: [a]}, serviceProvisionClusters: [a], serviceConsumptionClusters: [a]}"), warnings: []string{"spec.range: is deprecated", "spec.serviceProvisionClusters: is deprecated", "spec.serviceConsumptionClusters: is deprecated"}},
		"an autoscaler":                              {text: scaler("maxReplicas: 3, behavior: {}")},
		"an autoscaler of nothing":                   {text: "kind: FederatedHPA\nmetadata: {namespace: shop, name: a}\nspec: {scaleTargetRef: {apiVersion: a/b/c, kind: '', name: a/b}, maxReplicas: 0}", errs: []string{"spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Invalid value", "spec.scaleTargetRef.apiVersion: Invalid value", "spec.maxReplicas: Invalid value"}},
		"an autoscaler upside down":                  {text: scaler("minReplicas: 5, maxReplicas: 3"), errs: []string{"spec.maxReplicas: Invalid value"}},
		"an autoscaler from none":                    {text: scaler("minReplicas: 0, maxReplicas: 3"), errs: []string{"spec.minReplicas: Invalid value"}},
		"an autoscaler with an unknown metric":       {text: scaler("maxReplicas: 3, metrics: [{type: Mood}]"), errs: []string{"spec.metrics[0].type: Unsupported value"}},
		"an autoscaler with the metric of another":   {text: scaler("maxReplicas: 3, metrics: [{type: Pods, resource: {name: cpu, target: {type: Utilization}}}]"), errs: []string{"spec.metrics[0].pods: Required value", "spec.metrics[0].resource: Forbidden"}},
		"an autoscaler with metrics that make sense": {text: scaler("maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: '1'}}}, {type: Object, object: {describedObject: {kind: A, name: b}, metric: {name: c}, target: {type: Value, value: '1'}}}, {type: External, external: {metric: {name: a}, target: {type: Value, value: '1'}}}, {type: ContainerResource, containerResource: {container: a, name: cpu, target: {type: Utilization, averageUtilization: 50}}}]")},
		"an autoscaler with metrics that make none": {text: scaler("maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: ''}, target: {type: Near, averageValue: '0'}}}, {type: Object, object: {describedObject: {kind: A, name: b}, metric: {name: c}, target: {type: Value}}}, {type: External, external: {metric: {name: a}, target: {type: Value, value: '-1', averageValue: '1'}}}, {type: ContainerResource, containerResource: {container: '', name: '', target: {type: Utilization, averageUtilization: 0}}}, {type: Resource, resource: {name: cpu, target: {type: Utilization}}}]"),
			errs: []string{"spec.metrics[0].pods.metric.name: Required value", "spec.metrics[0].pods.target.type: Unsupported value", "spec.metrics[0].pods.target.averageValue: Invalid value", "spec.metrics[0].pods.target.averageValue: Required value", "spec.metrics[1].object.target.averageValue: Required value",
				"spec.metrics[2].external.target.value: Invalid value", "spec.metrics[2].external.target.value: Forbidden", "spec.metrics[3].containerResource.container: Required value", "spec.metrics[3].containerResource.name: Required value", "spec.metrics[3].containerResource.target.averageUtilization: Invalid value", "spec.metrics[4].resource.target.averageUtilization: Required value"}},
		"an autoscaler that behaves badly": {text: scaler("maxReplicas: 3, behavior: {scaleUp: {stabilizationWindowSeconds: 3601, selectPolicy: Some, policies: []}, scaleDown: {tolerance: '-1', policies: [{type: Clusters, value: 0, periodSeconds: 1801}]}}"),
			errs: []string{"spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value", "spec.behavior.scaleUp.selectPolicy: Unsupported value", "spec.behavior.scaleUp.policies: Required value", "spec.behavior.scaleDown.tolerance: Invalid value", "spec.behavior.scaleDown.policies[0].type: Unsupported value", "spec.behavior.scaleDown.policies[0].value: Invalid value", "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value"}},

		"a schedule":                              {text: cron(workload, "{name: a, schedule: '*/5 0-7 * * 1', targetReplicas: 0, timeZone: UTC}")},
		"a schedule of an autoscaler":             {text: cron(autoscaler, "{name: a, schedule: '@daily', targetMinReplicas: 1, targetMaxReplicas: 2}")},
		"a schedule of nothing":                   {text: cron(workload, ""), warnings: []string{"spec.rules: "}},
		"a schedule of an unknown kind of ours":   {text: cron("apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, name: x", "{name: a, schedule: '@daily', targetMinReplicas: 1}"), errs: []string{"spec.scaleTargetRef.kind: Unsupported value"}},
		"a schedule of a workload without number": {text: cron(workload, "{name: a, schedule: '@daily'}, {name: b, schedule: '@daily', targetReplicas: -1}"), errs: []string{"spec.rules[0].targetReplicas: Required value", "spec.rules[1].targetReplicas: Invalid value"}},
		"a schedule of an autoscaler without one": {text: cron(autoscaler, "{name: a, schedule: '@daily'}, {name: b, schedule: '@daily', targetMinReplicas: 0, targetMaxReplicas: 0}, {name: c, schedule: '@daily', targetMinReplicas: 3, targetMaxReplicas: 2}"), errs: []string{"spec.rules[0]: Required value", "spec.rules[1].targetMinReplicas: Invalid value", "spec.rules[1].targetMaxReplicas: Invalid value", "spec.rules[2].targetMinReplicas: Invalid value"}},
		"a schedule of no object":                 {text: cron("apiVersion: a/b/c, kind: '', name: a/b", "{name: a, schedule: '@daily', targetReplicas: 1}"), warnings: []string{"spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Invalid value", "spec.scaleTargetRef.apiVersion: Invalid value"}},
		"schedules that are none": {text: cron(workload, "{name: a, schedule: soon, targetReplicas: 1, timeZone: Mars/Base}, {name: a, schedule: 'TZ=0', targetReplicas: 1}, {name: '', schedule: 'CRON_TZ=Mars/Base 0 0 * * *', targetReplicas: 1, successfulHistoryLimit: 0, failedHistoryLimit: 33}, {name: "+strings.Repeat("a", 33)+", schedule: '', targetReplicas: 1}"),
			errs: []string{"spec.rules[0].schedule: Invalid value", "spec.rules[0].timeZone: Invalid value", "spec.rules[1].name: Duplicate value", "spec.rules[1].schedule: Invalid value", "spec.rules[2].name: Required value", "spec.rules[2].schedule: Invalid value",
				"spec.rules[2].successfulHistoryLimit: Invalid value", "spec.rules[2].failedHistoryLimit: Invalid value", "spec.rules[3].name: Too long", "spec.rules[3].schedule: Invalid value"},
			warnings: []string{"spec.rules[1].schedule: ", "spec.rules[2].schedule: "}},
		"a schedule in a time zone of its own": {text: cron(workload, "{name: a, schedule: 'TZ=UTC 0 0 * * *', targetReplicas: 1}"), warnings: []string{"spec.rules[0].schedule: names a time zone"}},
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

func TestServiceTypeStays(t *testing.T) {
	for _, k := range validate.Kinds() {
		if k.Kind != "MultiClusterService" {
			continue
		}
		old, obj := k.New(), k.New()
		for text, into := range map[string]validate.Object{"{spec: {types: [CrossCluster]}}": old, "{spec: {types: [LoadBalancer]}}": obj} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		errs, _ := k.Check(obj, old, validate.Facts{})
		if diff := cmp.Diff([]string{"spec.types: Forbidden"}, fields(errs)); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
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
