package scaling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	autoscalingv1alpha1 "github.com/flotilla-io/flotilla/api/autoscaling/v1alpha1"
)

func TestAutoscaler(t *testing.T) {
	scaler := func(spec string) string {
		return "metadata: {namespace: shop, name: a}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, " + spec + "}"
	}
	cases := map[string]struct {
		text string
		errs []string
	}{
		"an autoscaler":                              {text: scaler("maxReplicas: 3, behavior: {}")},
		"an autoscaler of nothing":                   {text: "metadata: {namespace: shop, name: a}\nspec: {scaleTargetRef: {apiVersion: a/b/c, kind: '', name: a/b}, maxReplicas: 0}", errs: []string{"spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Invalid value", "spec.scaleTargetRef.apiVersion: Invalid value", "spec.maxReplicas: Invalid value"}},
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
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := decode[autoscalingv1alpha1.FederatedHPA](t, tc.text)
			DefaultAutoscaler(a)
			errs, warnings := Autoscaler(a)
			check(t, errs, warnings, tc.errs, nil)
		})
	}
}

// What is completed is what Kubernetes makes of its own autoscalers.
func TestDefaultAutoscaler(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"nothing is given": {
			text: "{spec: {maxReplicas: 3}}",
			want: "{spec: {maxReplicas: 3, minReplicas: 1, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}",
		},
		"a behavior without rules": {
			text: "{spec: {minReplicas: 2, maxReplicas: 3, metrics: [{type: Pods}], behavior: {scaleDown: {stabilizationWindowSeconds: 5, selectPolicy: Min, policies: []}}}}",
			want: "{spec: {minReplicas: 2, maxReplicas: 3, metrics: [{type: Pods}], behavior: {scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]}, scaleDown: {stabilizationWindowSeconds: 5, selectPolicy: Min, policies: []}}}}",
		},
		"and all of it": {
			text: "{spec: {minReplicas: 2, maxReplicas: 3, metrics: [{type: Pods}], behavior: {}}}",
			want: "{spec: {minReplicas: 2, maxReplicas: 3, metrics: [{type: Pods}], behavior: {scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]}, scaleDown: {selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, want := decode[autoscalingv1alpha1.FederatedHPA](t, tc.text), decode[autoscalingv1alpha1.FederatedHPA](t, tc.want)
			DefaultAutoscaler(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("completed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCron(t *testing.T) {
	cron := func(target, rules string) string {
		return "metadata: {namespace: shop, name: c}\nspec: {scaleTargetRef: {" + target + "}, rules: [" + rules + "]}"
	}
	const workload, autoscaler = "apiVersion: apps/v1, kind: Deployment, name: web", "apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: web"
	cases := map[string]struct {
		text     string
		errs     []string
		warnings []string // what they begin with
	}{
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
			a := decode[autoscalingv1alpha1.CronFederatedHPA](t, tc.text)
			DefaultCron(a)
			errs, warnings := Cron(a)
			check(t, errs, warnings, tc.errs, tc.warnings)
		})
	}
}

func TestDefaultCron(t *testing.T) {
	got := decode[autoscalingv1alpha1.CronFederatedHPA](t, "{spec: {rules: [{name: a}, {name: b, suspend: true, successfulHistoryLimit: 1, failedHistoryLimit: 2}]}}")
	want := decode[autoscalingv1alpha1.CronFederatedHPA](t, "{spec: {rules: [{name: a, suspend: false, successfulHistoryLimit: 3, failedHistoryLimit: 3}, {name: b, suspend: true, successfulHistoryLimit: 1, failedHistoryLimit: 2}]}}")
	DefaultCron(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("completed (-want +got):\n%s", diff)
	}
}

// decode reads T from YAML, refusing unknown fields.
func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// check compares what a kind's errors are about, and what its warnings begin with.
func check(t *testing.T, errs field.ErrorList, warnings, wantErrs, wantWarnings []string) {
	t.Helper()
	var got []string
	for _, e := range errs {
		got = append(got, fmt.Sprintf("%s: %s", e.Field, e.Type))
	}
	if diff := cmp.Diff(wantErrs, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if len(warnings) != len(wantWarnings) {
		t.Fatalf("warnings: %q, want %q", warnings, wantWarnings)
	}
	for i, want := range wantWarnings {
		if !strings.HasPrefix(warnings[i], want) || len(warnings[i]) <= len(want) {
			t.Errorf("warning %q, want %q", warnings[i], want)
		}
	}
}
