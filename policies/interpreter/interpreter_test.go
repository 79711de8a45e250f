package interpreter_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestReplicas(t *testing.T) {
	type outcome struct {
		N     int32
		Req   *workv1alpha2.ReplicaRequirements
		Known bool
		Err   string
	}
	cases := map[string]struct {
		object string
		want   outcome
	}{
		"a deployment asks for what its pods request": {
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web}
spec:
  replicas: 3
  template:
    spec:
      nodeSelector: {disk: fast}
      initContainers: [{name: i, resources: {requests: {cpu: "2"}}}]
      containers:
      - {name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}
      - {name: b, resources: {requests: {cpu: 500m}}}`,
			want: outcome{3, &workv1alpha2.ReplicaRequirements{
				Namespace: "shop",
				NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "fast"}},
				ResourceRequest: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"),
				},
			}, true, ""},
		},
		"replicas that are not set are zero": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {template: {spec: {containers: [{name: a}]}}}}`,
			want:   outcome{0, nil, true, ""},
		},
		"a job runs no more pods than it has completions": {
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 5, completions: 2}}`,
			want:   outcome{2, nil, true, ""},
		},
		"a job without completions runs its parallelism": {
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 5}}`,
			want:   outcome{5, nil, true, ""},
		},
		"a pod is one": {
			object: `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}`,
			want:   outcome{1, nil, true, ""},
		},
		"a daemon set has none to divide": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}}`,
		},
		"a kind of the same name in another group is unknown": {
			object: `{apiVersion: example.io/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 3}}`,
		},
		"a negative number is an error": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: -1}}`,
			want:   outcome{0, nil, true, "replicas of Deployment d: [spec replicas] is no number of replicas: -1"},
		},
		"more than an int32 is an error": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 4294967297}}`,
			want:   outcome{0, nil, true, "replicas of Deployment d: [spec replicas] is no number of replicas: 4294967297"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, req, known, err := interpreter.Native().Replicas(object(t, tc.object))
			if diff := cmp.Diff(tc.want, outcome{n, req, known, text(err)}); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRevise(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"a deployment":                 {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}}`, `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 7}}`},
		"a job":                        {`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3, completions: 9}}`, `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 7, completions: 9}}`},
		"only where there is a number": {`{apiVersion: apps/v1, kind: Deployment, spec: {}}`, `{apiVersion: apps/v1, kind: Deployment, spec: {}}`},
		"not what has no replicas":     {`{apiVersion: v1, kind: Pod, spec: {replicas: 3}}`, `{apiVersion: v1, kind: Pod, spec: {replicas: 3}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := object(t, tc.object)
			got, _, err := interpreter.Native().Revise(in, 7)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("revised (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(object(t, tc.object).Object, in.Object); diff != "" {
				t.Errorf("the object that came in was changed:\n%s", diff)
			}
		})
	}
}

func TestRetain(t *testing.T) {
	const labelled = `metadata: {name: web, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}`
	cases := map[string]struct {
		desired, observed, want string
		retains                 bool
	}{
		"replicas that the member scaled are left to it where asked for": {
			desired:  "apiVersion: apps/v1\nkind: Deployment\n" + labelled + "\nspec: {replicas: 2, paused: true}",
			observed: "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 5}",
			want:     "apiVersion: apps/v1\nkind: Deployment\n" + labelled + "\nspec: {paused: true}",
			retains:  true,
		},
		"replicas that nobody scaled stay applied, or the server would reset them": {
			desired:  "apiVersion: apps/v1\nkind: Deployment\n" + labelled + "\nspec: {replicas: 2}",
			observed: "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 2}",
			want:     "apiVersion: apps/v1\nkind: Deployment\n" + labelled + "\nspec: {replicas: 2}",
			retains:  true,
		},
		"a new object gets all": {
			desired: "apiVersion: apps/v1\nkind: Deployment\n" + labelled + "\nspec: {replicas: 2}",
			want:    "apiVersion: apps/v1\nkind: Deployment\n" + labelled + "\nspec: {replicas: 2}",
			retains: true,
		},
		"replicas are ours otherwise": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`,
			observed: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 5}}`,
			want:     `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`,
		},
		"a claim keeps its volume": {
			desired:  `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: hub, storageClassName: a}}`,
			observed: `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: member}}`,
			want:     `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: a}}`,
			retains:  true,
		},
		"a service keeps its health check port": {
			desired:  `{apiVersion: v1, kind: Service, spec: {healthCheckNodePort: 1, type: LoadBalancer}}`,
			observed: `{apiVersion: v1, kind: Service, spec: {healthCheckNodePort: 2}}`,
			want:     `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			retains:  true,
		},
		"a service without one needs no look": {
			desired: `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`,
			want:    `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`,
		},
		"a service account keeps the member's pull secrets beside ours": {
			desired:  `{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: a}]}`,
			observed: `{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: b}, {name: a}]}`,
			want:     `{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: a}, {name: b}]}`,
			retains:  true,
		},
		"a service account without ours leaves the list alone": {
			desired:  `{apiVersion: v1, kind: ServiceAccount}`,
			observed: `{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: b}]}`,
			want:     `{apiVersion: v1, kind: ServiceAccount}`,
			retains:  true,
		},
		"a token stays the member's": {
			desired:  `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {token: aHVi}}`,
			observed: `{apiVersion: v1, kind: Secret, data: {token: bWVtYmVy}}`,
			want:     `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token}`,
			retains:  true,
		},
		"a pod stays on its node": {
			desired:  `{apiVersion: v1, kind: Pod, spec: {nodeName: a, serviceAccountName: x}}`,
			observed: `{apiVersion: v1, kind: Pod, spec: {nodeName: b, serviceAccountName: x}}`,
			want:     `{apiVersion: v1, kind: Pod, spec: {serviceAccountName: x}}`,
			retains:  true,
		},
		"other kinds are applied as they are": {
			desired:  `{apiVersion: v1, kind: ConfigMap, data: {a: b}}`,
			observed: `{apiVersion: v1, kind: ConfigMap, data: {a: c}}`,
			want:     `{apiVersion: v1, kind: ConfigMap, data: {a: b}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired, know := object(t, tc.desired), interpreter.Native()
			var observed *unstructured.Unstructured
			if tc.observed != "" {
				observed = object(t, tc.observed)
			}
			got, err := know.Retain(desired, observed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("to apply (-want +got):\n%s", diff)
			}
			if know.Retains(desired) != tc.retains {
				t.Errorf("needs a look at the member = %v, want %v", !tc.retains, tc.retains)
			}
			if diff := cmp.Diff(object(t, tc.desired).Object, desired.Object); diff != "" {
				t.Errorf("the object that came in was changed:\n%s", diff)
			}
		})
	}
}

func TestReflectStatus(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"a deployment reports counts and generations, not conditions": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4, annotations: {resourcetemplate.karmada.io/generation: "2"}}, status: {replicas: 3, readyReplicas: 1, observedGeneration: 4, conditions: [{type: A}]}}`,
			`{"generation":4,"observedGeneration":4,"readyReplicas":1,"replicas":3,"resourceTemplateGeneration":2}`,
		},
		"a stateful set reports its observed generation too": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, status: {replicas: 3, observedGeneration: 1, updateRevision: x}}`,
			`{"generation":1,"observedGeneration":1,"replicas":3,"resourceTemplateGeneration":0}`,
		},
		"a service without a load balancer reports nothing": {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`, ``},
		"a load balancer reports its addresses": {
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}, conditions: []}}`,
			`{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}`,
		},
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

func TestHealth(t *testing.T) {
	const healthy, not = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	cases := map[string]struct {
		object string
		want   workv1alpha2.ResourceHealth
	}{
		"a deployment that is rolled out":    {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`, healthy},
		"one whose latest spec is not seen":  {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`, not},
		"one that is not updated":            {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}}`, not},
		"one that is not available":          {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}}`, not},
		"a stateful set":                     {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}}`, healthy},
		"a replica set that lacks one":       {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, availableReplicas: 1}}`, not},
		"a daemon set everywhere":            {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}}`, healthy},
		"a daemon set that lacks a node":     {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}}`, not},
		"a service":                          {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, healthy},
		"a load balancer without an address": {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{}]}}}`, not},
		"a load balancer with one":           {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: x}]}}}`, healthy},
		"an ingress without an address":      {`{apiVersion: networking.k8s.io/v1, kind: Ingress}`, not},
		"a claim that is bound":              {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, healthy},
		"a claim that is pending":            {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, not},
		"a pod that has succeeded":           {`{apiVersion: v1, kind: Pod, status: {phase: Succeeded}}`, healthy},
		"a pod that runs and is ready":       {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, healthy},
		"a pod that runs":                    {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`, not},
		"a pod without a status":             {`{apiVersion: v1, kind: Pod}`, not},
		"a budget that is met":               {`{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 2, desiredHealthy: 2}}`, healthy},
		"a budget that is not":               {`{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 1, desiredHealthy: 2}}`, not},
		"a config map":                       {`{apiVersion: v1, kind: ConfigMap}`, healthy},
		"a status of an unexpected shape":    {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: [1]}`, not},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := interpreter.Native().Health(object(t, tc.object)); got != tc.want || err != nil {
				t.Errorf("health = %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

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
			`{"availableReplicas":0,"readyReplicas":0,"replicas":0}`,
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

func itemsOf(statuses []string) []workv1alpha2.AggregatedStatusItem {
	var items []workv1alpha2.AggregatedStatusItem
	for i, s := range statuses {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: "m" + string(rune('1'+i))}
		if s != "-" {
			item.Status = &runtime.RawExtension{Raw: []byte(s)}
		}
		items = append(items, item)
	}
	return items
}

func TestAggregateStatusOfGarbage(t *testing.T) {
	template := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`)
	_, _, err := interpreter.Native().AggregateStatus(template, itemsOf([]string{`[1`}))
	if want := "aggregate status of Deployment web: status of cluster m1: unexpected end of JSON input"; text(err) != want {
		t.Errorf("error = %q, want %q", text(err), want)
	}
}

func TestDependencies(t *testing.T) {
	dep := func(kind, name string) kinds.Dependency {
		return kinds.Dependency{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: name}
	}
	const spec = `{serviceAccountName: sa, imagePullSecrets: [{name: pull}], containers: [{name: a, envFrom: [{configMapRef: {name: c1}}, {secretRef: {name: s1}}], env: [{name: X, valueFrom: {configMapKeyRef: {name: c1, key: k}}}, {name: Z, valueFrom: {secretKeyRef: {name: s2, key: k}}}]}], volumes: [{name: a, configMap: {name: c2}}, {name: b, secret: {secretName: s3}}, {name: d, persistentVolumeClaim: {claimName: data}}, {name: e, projected: {sources: [{configMap: {name: c3}}, {secret: {name: s4}}]}}, {name: f, csi: {driver: x, nodePublishSecretRef: {name: s5}}}]}`
	all := []kinds.Dependency{
		dep("ConfigMap", "c1"), dep("ConfigMap", "c2"), dep("ConfigMap", "c3"), dep("PersistentVolumeClaim", "data"),
		dep("Secret", "pull"), dep("Secret", "s1"), dep("Secret", "s2"), dep("Secret", "s3"), dep("Secret", "s4"), dep("Secret", "s5"),
		dep("ServiceAccount", "sa"),
	}
	withoutClaim := append(append([]kinds.Dependency{}, all[:3]...), all[4:]...)
	cases := map[string]struct {
		object string
		want   []kinds.Dependency
	}{
		"a deployment": {`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop}, spec: {template: {spec: ` + spec + `}}}`, all},
		"a cron job":   {`{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop}, spec: {jobTemplate: {spec: {template: {spec: ` + spec + `}}}}}`, all},
		"a stateful set makes its own claims": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop}, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: ` + spec + `}}}`, withoutClaim,
		},
		"the default service account is everywhere": {`{apiVersion: v1, kind: Pod, metadata: {namespace: shop}, spec: {serviceAccountName: default, containers: []}}`, nil},
		"an ingress needs its certificates":         {`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: shop}, spec: {tls: [{secretName: b}, {secretName: a}, {}]}}`, []kinds.Dependency{dep("Secret", "a"), dep("Secret", "b")}},
		"a config map needs nothing that is known":  {`{apiVersion: v1, kind: ConfigMap}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := interpreter.Native().Dependencies(object(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dependencies (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLayers: the first layer that has a rule answers, for each operation.
func TestLayers(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	first := kinds.Table{gvk: {Health: func(kinds.Object) (bool, error) { return true, nil }}}
	second := kinds.Table{gvk: {
		Health:   func(kinds.Object) (bool, error) { return false, nil },
		Replicas: func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) { return 42, nil, nil },
	}}
	know, obj := interpreter.New(first, second), object(t, `{apiVersion: apps/v1, kind: Deployment}`)
	health, _ := know.Health(obj)
	n, _, _, _ := know.Replicas(obj)
	if health != workv1alpha2.ResourceHealthy || n != 42 || !know.JudgesHealth(obj) {
		t.Errorf("health = %v, replicas = %d", health, n)
	}
}

// FuzzStatus: no status that a member sends crashes a rule.
func FuzzStatus(f *testing.F) {
	f.Add(`{"replicas":1}`, uint8(0))
	f.Add(`{"conditions":[{"type":"Failed","status":"True"}],"startTime":1}`, uint8(3))
	f.Add(`{"loadBalancer":{"ingress":"x"},"phase":7,"containerStatuses":[1,{"ready":"x"}]}`, uint8(5))
	gvks := []string{"apps/v1 Deployment", "apps/v1 DaemonSet", "batch/v1 CronJob", "batch/v1 Job", "v1 Service", "v1 Pod",
		"networking.k8s.io/v1 Ingress", "policy/v1 PodDisruptionBudget", "v1 PersistentVolumeClaim", "example.io/v1 X"}
	f.Fuzz(func(t *testing.T, status string, kind uint8) {
		var apiVersion, name string
		gvk := gvks[int(kind)%len(gvks)]
		for i := range gvk {
			if gvk[i] == ' ' {
				apiVersion, name = gvk[:i], gvk[i+1:]
			}
		}
		var decoded any
		if utiljson.Unmarshal([]byte(status), &decoded) != nil {
			return
		}
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": name, "status": decoded, "spec": map[string]any{"type": "LoadBalancer"},
		}}
		know := interpreter.Native()
		if _, err := know.Health(obj); err != nil {
			t.Fatal(err)
		}
		reflected, err := know.ReflectStatus(obj)
		if err != nil {
			t.Fatal(err)
		}
		obj.Object["status"] = map[string]any{}
		items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: reflected}}
		aggregated, changed, err := know.AggregateStatus(obj, items)
		if err != nil || !changed {
			return
		}
		obj.Object["status"] = aggregated
		if again, changed, _ := know.AggregateStatus(obj, items); changed {
			t.Fatalf("aggregating twice is not aggregating once:\n%v\n%v", aggregated, again)
		}
	})
}
