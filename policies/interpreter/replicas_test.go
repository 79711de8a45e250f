package interpreter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

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
			want:   outcome{0, nil, true, "replicas of Deployment d: spec.replicas is no number of replicas: -1"},
		},
		"more than an int32 is an error": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 4294967297}}`,
			want:   outcome{0, nil, true, "replicas of Deployment d: spec.replicas is no number of replicas: 4294967297"},
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
