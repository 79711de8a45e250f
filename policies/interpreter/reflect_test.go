package interpreter_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter"
)

func TestReflectStatus(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"a deployment reports counts and generations, not what nobody waits for": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4, annotations: {resourcetemplate.karmada.io/generation: "2"}}, status: {replicas: 3, readyReplicas: 1, observedGeneration: 4, conditions: [{type: A}]}}`,
			`{"generation":4,"observedGeneration":4,"readyReplicas":1,"replicas":3,"resourceTemplateGeneration":2}`,
		},
		"a stateful set reports its observed generation too": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, status: {replicas: 3, observedGeneration: 1, updateRevision: x}}`,
			`{"generation":1,"observedGeneration":1,"replicas":3,"resourceTemplateGeneration":0,"updateRevision":"x"}`,
		},
		"a service without a load balancer reports nothing": {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`, ``},
		"a load balancer reports its addresses": {
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}, conditions: []}}`,
			`{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}`,
		},
		"a pod reports all, and which generation it is about": {
			`{apiVersion: v1, kind: Pod, metadata: {generation: 3, annotations: {resourcetemplate.karmada.io/generation: "2"}}, status: {phase: Running, podIP: 10.0.0.1, observedGeneration: 3}}`,
			`{"generation":3,"observedGeneration":3,"phase":"Running","podIP":"10.0.0.1","resourceTemplateGeneration":2}`,
		},
		"one whose kubelet does not say has seen what there is": {
			`{apiVersion: v1, kind: Pod, metadata: {generation: 3, annotations: {resourcetemplate.karmada.io/generation: "2"}}, status: {phase: Running}}`,
			`{"phase":"Running","resourceTemplateGeneration":2}`,
		},
		"a job reports how it ends": {
			`{apiVersion: batch/v1, kind: Job, status: {ready: 1, active: 1, conditions: [{type: Suspended, status: "False", reason: JobResumed, lastProbeTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
			`{"active":1,"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"JobResumed","status":"False","type":"Suspended"}]}`,
		},
		"a replica set": {
			`{apiVersion: apps/v1, kind: ReplicaSet, status: {replicas: 1, fullyLabeledReplicas: 1, terminatingReplicas: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: no quota}]}}`,
			`{"conditions":[{"message":"no quota","reason":"FailedCreate","status":"True","type":"ReplicaFailure"}],"fullyLabeledReplicas":1,"generation":0,"replicas":1,"resourceTemplateGeneration":0}`,
		},
		"a daemon set": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 2, collisionCount: 1}}`,
			`{"desiredNumberScheduled":2,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":0}`,
		},
		"a disruption budget": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}, status: {observedGeneration: 1, disruptionsAllowed: 1, expectedPods: 2, desiredHealthy: 1, currentHealthy: 2, disruptedPods: {p: "2026-01-01T00:00:00Z"}}}`,
			`{"currentHealthy":2,"desiredHealthy":1,"disruptedPods":{"p":"2026-01-01T00:00:00Z"},"disruptionsAllowed":1,"expectedPods":2,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":0}`,
		},
		"an autoscaler, without what it says each time it looks": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {generation: 1}, status: {currentReplicas: 1, desiredReplicas: 2, lastScaleTime: "2026-01-01T00:00:00Z", currentMetrics: [{type: Resource}], conditions: [{type: AbleToScale, status: "True", reason: ReadyForNewScale, message: recommended size matches current size, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
			`{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","status":"True","type":"AbleToScale"}],"currentReplicas":1,"desiredReplicas":2,"generation":1,"resourceTemplateGeneration":0}`,
		},
		"an ingress reports all of it":               {`{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, `{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}`},
		"a kind that nobody knows reports all of it": {`{apiVersion: example.io/v1, kind: X, status: {a: {b: [1]}}}`, `{"a":{"b":[1]}}`},
		"no status is none":                          {`{apiVersion: v1, kind: ConfigMap}`, ``},
		"a status that is no object is none":         {`{apiVersion: example.io/v1, kind: X, status: fine}`, ``},
		"a deployment without a status":              {`{apiVersion: apps/v1, kind: Deployment}`, ``},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := interpreter.Native().ReflectStatus(object(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			reported := ""
			if got != nil {
				reported = string(got.Raw)
			}
			if reported != tc.want {
				t.Errorf("reported\n got %s\nwant %s", reported, tc.want)
			}
		})
	}
}

// TestReflectsNoTicks checks that what changes all the time without news is not
// reported, as each change would be written to the hub.
func TestReflectsNoTicks(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, status: {replicas: 1, conditions: [
  {type: Progressing, status: "True", reason: ReplicaSetUpdated, message: ReplicaSet web-1 is progressing, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"},
  {type: Available, status: "True", reason: MinimumReplicasAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`
	const autoscaler = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {desiredReplicas: 1, conditions: [{type: AbleToScale, status: "True", reason: ReadyForNewScale, message: a}, {type: ScalingLimited, status: "False", reason: DesiredWithinRange}]}}`
	cases := map[string]struct{ object, was, is string }{
		"a deployment looks again":             {deployment, `lastUpdateTime: "2026-01-01T00:00:00Z"`, `lastUpdateTime: "2026-01-01T00:00:07Z"`},
		"a deployment makes another set":       {deployment, "web-1", "web-2"},
		"an autoscaler looks again":            {autoscaler, "ReadyForNewScale", "ScaleDownStabilized"},
		"an autoscaler explains itself anew":   {autoscaler, "message: a", "message: b"},
		"an autoscaler is within other bounds": {autoscaler, "DesiredWithinRange", "Other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(tc.object, tc.was, tc.is, 1)
			if changed == tc.object {
				t.Fatal("nothing changes")
			}
			was, err := interpreter.Native().ReflectStatus(object(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			is, err := interpreter.Native().ReflectStatus(object(t, changed))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(was.Raw), string(is.Raw)); diff != "" {
				t.Errorf("reported (-was +is):\n%s", diff)
			}
		})
	}
}
