package interpreter_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter"
)

func TestAggregateStatus(t *testing.T) {
	const noChange = "unchanged"
	cases := map[string]struct {
		template string
		// items are what clusters m1, m2, … report; "-" for nothing.
		items []string
		want  string
	}{
		"a deployment sums up and has observed its generation once all have": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: kept}]}}`,
			[]string{`{"replicas":2,"readyReplicas":1,"generation":5,"observedGeneration":5,"resourceTemplateGeneration":2}`, `{"replicas":3,"readyReplicas":3,"updatedReplicas":3,"availableReplicas":3,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2}`},
			`{"availableReplicas":3,"conditions":[{"type":"kept"}],"observedGeneration":2,"readyReplicas":4,"replicas":5,"unavailableReplicas":0,"updatedReplicas":3}`,
		},
		"not while one reports about an older template": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
			[]string{`{"replicas":2,"generation":5,"observedGeneration":5,"resourceTemplateGeneration":2}`, `{"replicas":3,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1}`},
			`{"availableReplicas":0,"currentReplicas":0,"observedGeneration":1,"readyReplicas":0,"replicas":5,"updatedReplicas":0}`,
		},
		"not while one reports nothing, and what has gone is cleared": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, status: {replicas: 9, readyReplicas: 9}}`,
			[]string{`-`},
			`{"availableReplicas":0,"fullyLabeledReplicas":0,"readyReplicas":0,"replicas":0}`,
		},
		"zeros that the server leaves out are no change": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {replicas: 1}}`,
			[]string{`{"replicas":1}`},
			noChange,
		},
		"nothing and nothing is no change": {`{apiVersion: apps/v1, kind: Deployment}`, nil, noChange},
		"a daemon set": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}}`,
			[]string{`{"desiredNumberScheduled":3,"numberReady":2}`, `{"desiredNumberScheduled":1,"numberReady":1}`},
			`{"currentNumberScheduled":0,"desiredNumberScheduled":4,"numberAvailable":0,"numberMisscheduled":0,"numberReady":3,"numberUnavailable":0,"updatedNumberScheduled":0}`,
		},
		"an autoscaler": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {currentMetrics: null, desiredReplicas: 1}}`,
			[]string{`{"currentReplicas":2,"desiredReplicas":4}`, `{"currentReplicas":1,"desiredReplicas":1}`},
			`{"currentMetrics":null,"currentReplicas":3,"desiredReplicas":5}`,
		},
		"a budget names pods by cluster": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget}`,
			[]string{`{"expectedPods":2,"disruptedPods":{"p":"2026-01-01T00:00:00Z"}}`, `{"expectedPods":1}`},
			`{"currentHealthy":0,"desiredHealthy":0,"disruptedPods":{"m1/p":"2026-01-01T00:00:00Z"},"disruptionsAllowed":0,"expectedPods":3}`,
		},
		"addresses are collected, sorted, each once": {
			`{apiVersion: networking.k8s.io/v1, kind: Ingress}`,
			[]string{`{"loadBalancer":{"ingress":[{"ip":"2.2.2.2"},{"ip":"1.1.1.1"}]}}`, `{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"}]}}`},
			`{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"},{"ip":"2.2.2.2"}]}}`,
		},
		"addresses that have gone are cleared": {
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`,
			[]string{`{}`}, `{"loadBalancer":{"ingress":[]}}`,
		},
		"a service without a load balancer has no status": {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, []string{`{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"}]}}`}, noChange},
		"a claim is lost if it is anywhere":               {`{apiVersion: v1, kind: PersistentVolumeClaim}`, []string{`{"phase":"Bound"}`, `{"phase":"Lost"}`, `-`}, `{"phase":"Lost"}`},
		"a claim is bound only if it is everywhere":       {`{apiVersion: v1, kind: PersistentVolumeClaim}`, []string{`{"phase":"Bound"}`, `-`}, `{"phase":"Pending"}`},
		"a volume": {`{apiVersion: v1, kind: PersistentVolume}`, []string{`{"phase":"Bound"}`, `{"phase":"Available"}`}, `{"phase":"Available"}`},
		"a deployment takes conditions from its clusters, with the time of the last": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {conditions: [{type: Available, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
			[]string{
				`{"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","lastTransitionTime":"2026-01-02T00:00:00Z"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","lastTransitionTime":"2026-01-02T00:00:00Z"}]}`,
				`{"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","lastTransitionTime":"2026-01-03T00:00:00Z"},{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"too slow","lastTransitionTime":"2026-01-04T00:00:00Z"}]}`,
			},
			`{"availableReplicas":0,"conditions":[{"lastTransitionTime":"2026-01-03T00:00:00Z","message":"","reason":"MinimumReplicasAvailable","status":"True","type":"Available"},{"lastTransitionTime":"2026-01-04T00:00:00Z","message":"m2: too slow","reason":"ProgressDeadlineExceeded","status":"False","type":"Progressing"}],"readyReplicas":0,"replicas":0,"unavailableReplicas":0,"updatedReplicas":0}`,
		},
		"counts that do not fit each other are made to": {
			`{apiVersion: apps/v1, kind: Deployment}`, []string{`{"replicas":2,"readyReplicas":9,"updatedReplicas":9,"availableReplicas":9}`, `{"replicas":-5,"readyReplicas":"x"}`},
			`{"availableReplicas":2,"readyReplicas":2,"replicas":2,"unavailableReplicas":0,"updatedReplicas":2}`,
		},
		"a stateful set is between two revisions where any cluster is": {
			`{apiVersion: apps/v1, kind: StatefulSet, status: {currentRevision: x, updateRevision: x}}`,
			[]string{`{"currentRevision":"b","updateRevision":"b"}`, `{"currentRevision":"a","updateRevision":"b"}`, `{"currentRevision":"0","updateRevision":"b"}`},
			`{"availableReplicas":0,"currentReplicas":0,"currentRevision":"a","readyReplicas":0,"replicas":0,"updateRevision":"b","updatedReplicas":0}`,
		},
		"a budget allows disruptions as soon as one cluster does": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget}`,
			[]string{`{"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"InsufficientPods"}]}`, `{"disruptionsAllowed":1,"conditions":[{"type":"DisruptionAllowed","status":"True","reason":"SufficientPods"}]}`},
			`{"conditions":[{"message":"m2: SufficientPods","reason":"SufficientPods","status":"True","type":"DisruptionAllowed"}],"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":1,"expectedPods":0}`,
		},
		"an autoscaler that cannot see metrics in a cluster": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {generation: 1}}`,
			[]string{`{"observedGeneration":1,"generation":1,"resourceTemplateGeneration":1,"conditions":[{"type":"ScalingActive","status":"False","reason":"FailedGetResourceMetric","message":"no metrics"}]}`},
			`{"conditions":[{"message":"m1: no metrics","reason":"FailedGetResourceMetric","status":"False","type":"ScalingActive"}],"currentReplicas":0,"desiredReplicas":0,"observedGeneration":1}`,
		},
		"a load balancer says how its addresses are reached": {
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			[]string{`{"loadBalancer":{"ingress":[{"ip":"1.1.1.1","ipMode":"Proxy"},{"ip":"1.1.1.2"},{"hostname":"a.example.com","ports":[{"port":80,"protocol":"TCP","error":"Busy"}]}]}}`},
			`{"loadBalancer":{"ingress":[{"hostname":"a.example.com","ports":[{"error":"Busy","port":80,"protocol":"TCP"}]},{"ip":"1.1.1.1","ipMode":"Proxy"},{"ip":"1.1.1.2","ipMode":"VIP"}]}}`,
		},
		"addresses that a server would refuse spoil nothing": {
			`{apiVersion: networking.k8s.io/v1, kind: Ingress}`,
			[]string{`{"loadBalancer":{"ingress":[7,{"ip":"nowhere"},{"hostname":"A B"},{"hostname":"1.1.1.1"},{"ip":"::ffff:1.1.1.1"},{"ip":"fe80::1%eth0"}]}}`, `{"loadBalancer":{"ingress":[{"ip":"2001:DB8::1","ports":[{"port":-1}]}]}}`},
			`{"loadBalancer":{"ingress":[{"ip":"2001:db8::1"}]}}`,
		},
		"a volume claim that is being resized in a cluster": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {creationTimestamp: "2026-01-01T00:00:00Z"}}`,
			[]string{`{"phase":"Bound","conditions":[{"type":"Resizing","status":"True"}]}`, `{"phase":"Bound"}`},
			`{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"m1: True","reason":"Reported","status":"True","type":"Resizing"}],"phase":"Bound"}`,
		},
		"a job that is held where it has not ended": {
			`{apiVersion: batch/v1, kind: Job}`,
			[]string{`{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"True","lastTransitionTime":"2026-01-01T01:00:00Z"}]}`, `{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}`},
			`{"active":0,"conditions":[{"lastProbeTime":"2026-01-01T01:00:00Z","lastTransitionTime":"2026-01-01T01:00:00Z","message":"Job suspended","reason":"JobSuspended","status":"True","type":"Suspended"}],"failed":0,"succeeded":1}`,
		},
		"a job that goes on": {
			`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Suspended, status: "True"}]}}`,
			[]string{`{"active":1,"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"False","lastTransitionTime":"2026-01-01T02:00:00Z"}]}`},
			`{"active":1,"conditions":[{"lastProbeTime":"2026-01-01T02:00:00Z","lastTransitionTime":"2026-01-01T02:00:00Z","message":"Job resumed","reason":"JobResumed","status":"False","type":"Suspended"}],"failed":0,"startTime":"2026-01-01T00:00:00Z","succeeded":0}`,
		},
		"a job that is complete everywhere": {
			`{apiVersion: batch/v1, kind: Job}`,
			[]string{`{"succeeded":1,"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T03:00:00Z","conditions":[{"type":"Complete","status":"True","lastTransitionTime":"2026-01-01T03:00:00Z"}]}`, `{"succeeded":1,"startTime":"2026-01-01T01:00:00Z","completionTime":"never","conditions":[{"type":"Complete","status":"True"}]}`},
			`{"active":0,"completionTime":"2026-01-01T03:00:00Z","conditions":[{"lastProbeTime":"2026-01-01T03:00:00Z","lastTransitionTime":"2026-01-01T03:00:00Z","message":"Job completed","reason":"Completed","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2026-01-01T03:00:00Z","lastTransitionTime":"2026-01-01T03:00:00Z","message":"Job completed","reason":"Completed","status":"True","type":"Complete"}],"failed":0,"startTime":"2026-01-01T00:00:00Z","succeeded":2}`,
		},
		"a container that may start again has not ended for good": {
			`{apiVersion: v1, kind: Pod, spec: {restartPolicy: OnFailure, containers: [{name: a}, {name: b}, {name: c, restartPolicy: Always}]}}`,
			[]string{`{"phase":"Running","containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":1}}},{"name":"b","state":{"terminated":{"exitCode":0}}},{"name":"c","state":{"terminated":{"exitCode":0}}}]}`},
			`{"containerStatuses":[{"image":"","imageID":"","name":"a","ready":false,"restartCount":0},{"image":"","imageID":"","name":"b","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0}}},{"image":"","imageID":"","name":"c","ready":false,"restartCount":0}],"phase":"Running"}`,
		},
		"one that has, stays so, as the server asks for": {
			`{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}]}}`,
			[]string{`{"phase":"Running","containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}}]}`},
			`{"containerStatuses":[{"image":"","imageID":"","name":"a","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0}}}],"phase":"Running"}`,
		},
		"a pod": {
			`{apiVersion: v1, kind: Pod}`,
			[]string{`{"phase":"Running","containerStatuses":[{"name":"a","ready":true,"state":{"running":{}},"lastState":{}}]}`, `{"phase":"Running","containerStatuses":[{"name":"a","ready":false}]}`},
			`{"containerStatuses":[{"image":"","imageID":"","name":"m1/a","ready":true,"restartCount":0,"state":{"running":{}}},{"image":"","imageID":"","name":"m2/a","ready":false,"restartCount":0}],"phase":"Running"}`,
		},
		"a cron job": {
			`{apiVersion: batch/v1, kind: CronJob, status: {lastScheduleTime: "2026-01-01T00:00:00Z"}}`,
			[]string{`{"active":[{"name":"x"}],"lastScheduleTime":"2026-01-02T00:00:00Z"}`, `{"lastScheduleTime":"2025-01-01T00:00:00Z","lastSuccessfulTime":"2026-01-01T00:00:00Z"}`},
			`{"active":[{"name":"x"}],"lastScheduleTime":"2026-01-02T00:00:00Z","lastSuccessfulTime":"2026-01-01T00:00:00Z"}`,
		},
		"a cron job of which a cluster reports nonsense": {
			`{apiVersion: batch/v1, kind: CronJob}`,
			[]string{`{"active":[{"name":7},"x",{"name":"j","odd":1}],"lastScheduleTime":"zzz"}`, `{"active":3,"lastSuccessfulTime":4}`},
			`{"active":[{"name":"j"}]}`,
		},
		"a job that still runs somewhere has no end, and no start until it has started everywhere": {
			`{apiVersion: batch/v1, kind: Job}`,
			[]string{`{"succeeded":1,"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Complete","status":"True"}]}`, `-`},
			`{"active":0,"failed":0,"succeeded":1}`,
		},
		"a job that failed somewhere ends when nothing runs any more": {
			`{apiVersion: batch/v1, kind: Job}`,
			[]string{`{"failed":2,"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Failed","status":"True","lastTransitionTime":"2026-01-01T01:00:00Z"}]}`, `{"active":1,"startTime":"2026-01-01T00:00:00Z"}`},
			`{"active":1,"conditions":[{"lastProbeTime":"2026-01-01T01:00:00Z","lastTransitionTime":"2026-01-01T01:00:00Z","message":"Job executed failed in member clusters m1","reason":"JobFailed","status":"True","type":"FailureTarget"}],"failed":2,"startTime":"2026-01-01T00:00:00Z","succeeded":0}`,
		},
		"counts of ended pods never fall": {
			`{apiVersion: batch/v1, kind: Job, status: {succeeded: 5, failed: 1}}`, []string{`{"succeeded":2,"active":1}`},
			`{"active":1,"failed":1,"succeeded":5}`,
		},
		"a job that has ended stays so": {
			`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True"}]}}`, []string{`{"active":3}`}, noChange,
		},
		"kinds that do not add up are left alone": {`{apiVersion: example.io/v1, kind: X, status: {a: 1}}`, []string{`{"a":2}`}, noChange},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := object(t, tc.template)
			status, changed, err := interpreter.Native().AggregateStatus(template, itemsOf(tc.items))
			if err != nil {
				t.Fatal(err)
			}
			if changed != (tc.want != noChange) {
				t.Fatalf("changed = %v: %v", changed, status)
			}
			if diff := cmp.Diff(object(t, tc.template).Object, template.Object); diff != "" {
				t.Errorf("the template that came in was changed:\n%s", diff)
			}
			if !changed {
				return
			}
			got, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("status\n got %s\nwant %s", got, tc.want)
			}
			template.Object["status"] = status
			if _, changed, _ := interpreter.Native().AggregateStatus(template, itemsOf(tc.items)); changed {
				t.Error("aggregating twice is not aggregating once")
			}
		})
	}
}

func TestAggregateStatusOfGarbage(t *testing.T) {
	template := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`)
	_, _, err := interpreter.Native().AggregateStatus(template, itemsOf([]string{`[1`}))
	if want := "aggregate status of Deployment web: status of cluster m1: unexpected end of JSON input"; text(err) != want {
		t.Errorf("error = %q, want %q", text(err), want)
	}
}
