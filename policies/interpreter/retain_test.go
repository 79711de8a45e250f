package interpreter_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// byAutoscaler is the managed fields entry of an autoscaler that set replicas.
const byAutoscaler = `{manager: kube-controller-manager, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}`

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
		"a stateful set keeps replicas where asked for, too": {
			desired:  "apiVersion: apps/v1\nkind: StatefulSet\n" + labelled + "\nspec: {replicas: 2}",
			observed: "apiVersion: apps/v1\nkind: StatefulSet\nspec: {replicas: 5}",
			want:     "apiVersion: apps/v1\nkind: StatefulSet\n" + labelled + "\nspec: {}",
			retains:  true,
		},
		"a replica set keeps replicas where asked for, too": {
			desired:  "apiVersion: apps/v1\nkind: ReplicaSet\n" + labelled + "\nspec: {replicas: 2}",
			observed: "apiVersion: apps/v1\nkind: ReplicaSet\nspec: {replicas: 5}",
			want:     "apiVersion: apps/v1\nkind: ReplicaSet\n" + labelled + "\nspec: {}",
			retains:  true,
		},
		"replicas that an autoscaler set are left to it without being asked": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2, paused: true}}`,
			observed: `{apiVersion: apps/v1, kind: Deployment, metadata: {managedFields: [` + byAutoscaler + `]}, spec: {replicas: 5}}`,
			want:     `{apiVersion: apps/v1, kind: Deployment, spec: {paused: true}}`,
		},
		"equal ones, too, or they would become ours": {
			desired:  `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 5}}`,
			observed: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {managedFields: [` + byAutoscaler + `]}, spec: {replicas: 5}}`,
			want:     `{apiVersion: apps/v1, kind: StatefulSet, spec: {}}`,
		},
		"not where the template insists on its own": {
			desired:  "apiVersion: apps/v1\nkind: Deployment\n" + strings.Replace(labelled, "true", "false", 1) + "\nspec: {replicas: 2}",
			observed: `{apiVersion: apps/v1, kind: Deployment, metadata: {managedFields: [` + byAutoscaler + `]}, spec: {replicas: 5}}`,
			want:     "apiVersion: apps/v1\nkind: Deployment\n" + strings.Replace(labelled, "true", "false", 1) + "\nspec: {replicas: 2}",
		},
		"not those that a person scaled": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`,
			observed: `{apiVersion: apps/v1, kind: Deployment, metadata: {managedFields: [` + strings.Replace(byAutoscaler, "kube-controller-manager", "kubectl-scale", 1) + `]}, spec: {replicas: 5}}`,
			want:     `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`,
		},
		"not those of kinds that have no replicas": {
			desired:  `{apiVersion: example.io/v1, kind: X, spec: {replicas: 2}}`,
			observed: `{apiVersion: example.io/v1, kind: X, metadata: {managedFields: [` + byAutoscaler + `]}, spec: {replicas: 5}}`,
			want:     `{apiVersion: example.io/v1, kind: X, spec: {replicas: 2}}`,
		},
		"a service keeps the address that the member gave": {
			desired:  `{apiVersion: v1, kind: Service, spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}}`,
			observed: `{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80}]}}`,
			want:     `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`,
			retains:  true,
		},
		"a service keeps node ports that were not set from here, port by port": {
			desired: `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, nodePort: 30001}, {port: 80, protocol: UDP, nodePort: 30002}, {port: 443, nodePort: 30003}]}}`,
			observed: `{apiVersion: v1, kind: Service, metadata: {managedFields: [{manager: flotilla, operation: Apply, fieldsV1: {"f:spec": {"f:ports": {'k:{"port":443,"protocol":"TCP"}': {"f:nodePort": {}}}}}}]},
  spec: {ports: [{port: 80, protocol: TCP, nodePort: 31001}, {port: 80, protocol: UDP, nodePort: 30002}, {port: 443, protocol: TCP, nodePort: 31003}]}}`,
			want:    `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}, {port: 80, protocol: UDP, nodePort: 30002}, {port: 443, nodePort: 30003}]}}`,
			retains: true,
		},
		"a volume keeps its claim": {
			desired:  `{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: {name: a}, capacity: {storage: 1Gi}}}`,
			observed: `{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: {name: a, uid: u}}}`,
			want:     `{apiVersion: v1, kind: PersistentVolume, spec: {capacity: {storage: 1Gi}}}`,
			retains:  true,
		},
		"a job keeps the selector that the member made, and the labels for it": {
			desired:  `{apiVersion: batch/v1, kind: Job, spec: {selector: {matchLabels: {controller-uid: h}}, template: {metadata: {labels: {controller-uid: h, app: x}}}}}`,
			observed: `{apiVersion: batch/v1, kind: Job, spec: {selector: {matchLabels: {controller-uid: m}}, template: {metadata: {labels: {controller-uid: m, app: y}}}}}`,
			want:     `{apiVersion: batch/v1, kind: Job, spec: {template: {metadata: {labels: {app: x}}}}}`,
			retains:  true,
		},
		"a job without either needs no look": {
			desired:  `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1}}`,
			observed: `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2}}`,
			want:     `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1}}`,
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
