package native_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// retained is whether the member's object is needed, and what is applied given
// that object.
type retained struct {
	Looks   bool
	Applied map[string]any
}

// checkRetain compares what is applied where the member has observed. Neither
// object may be changed, as caches share them.
func checkRetain(t *testing.T, desired, observed, want string, readsLive bool) {
	t.Helper()
	know, in, member := interpreter.Native(), object(t, desired), object(t, observed)
	out, err := know.Retain(in, member)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(retained{readsLive, object(t, want).Object}, retained{know.Retains(in), out.Object}); diff != "" {
		t.Errorf("what is applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{object(t, desired).Object, object(t, observed).Object}, []any{in.Object, member.Object}); diff != "" {
		t.Errorf("what was given was changed (-before +after):\n%s", diff)
	}
}

// TestRetainAccounts checks that a service account keeps the member's pull
// secrets, and a token the member's data.
func TestRetainAccounts(t *testing.T) {
	cases := map[string]struct {
		desired, observed, want string
		readsLive               bool
	}{
		"pull secrets of both": {
			`{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: a}, {name: b}]}`,
			`{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: c}, {name: a}, {name: c}], secrets: [{name: d}]}`,
			`{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: a}, {name: b}, {name: c}]}`, true,
		},
		"pull secrets of which the member has no others": {
			`{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: a}, {name: b}]}`,
			`{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: b}]}`,
			`{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: a}, {name: b}]}`, true,
		},
		"pull secrets of the member alone are not applied": {
			`{apiVersion: v1, kind: ServiceAccount, automountServiceAccountToken: false}`,
			`{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: b}]}`,
			`{apiVersion: v1, kind: ServiceAccount, automountServiceAccountToken: false}`, false,
		},
		"a token's data is the member's": {
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {token: aHVi}}`,
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {token: bWVtYmVy}}`,
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token}`, true,
		},
		"another secret's data is the template's": {
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {token: aHVi}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {token: bWVtYmVy}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {token: aHVi}}`, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkRetain(t, tc.desired, tc.observed, tc.want, tc.readsLive) })
	}
}

// TestRetainServices checks that a service keeps the addresses and ports that the
// member allocated, but for node ports that Flotilla applied.
func TestRetainServices(t *testing.T) {
	const ours = `metadata: {managedFields: [{manager: flotilla, operation: Apply, fieldsV1: {"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}}}]}`
	cases := map[string]struct {
		desired, observed, want string
		readsLive               bool
	}{
		"addresses that the member gave": {
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], type: ClusterIP}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.9.0.9, clusterIPs: [10.9.0.9]}}`,
			`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, true,
		},
		"addresses that are the same": {
			`{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`, true,
		},
		"a list of addresses alone": {
			`{apiVersion: v1, kind: Service, spec: {clusterIPs: [10.0.0.1]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.9.0.9, clusterIPs: [10.9.0.9]}}`,
			`{apiVersion: v1, kind: Service, spec: {}}`, true,
		},
		"a member that has none, as an external name": {
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1}}`,
			`{apiVersion: v1, kind: Service, spec: {type: ExternalName}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1}}`, true,
		},
		"the port of health checks": {
			`{apiVersion: v1, kind: Service, spec: {healthCheckNodePort: 30001}}`,
			`{apiVersion: v1, kind: Service, spec: {healthCheckNodePort: 30002}}`,
			`{apiVersion: v1, kind: Service, spec: {}}`, true,
		},
		"node ports that the member gave, by port and protocol": {
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, nodePort: 30001}, {port: 80, protocol: UDP, nodePort: 30001}, {port: 81, nodePort: 30003}]}}`,
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, protocol: TCP, nodePort: 30009}, {port: 80, protocol: UDP, nodePort: 30001}]}}`,
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}, {port: 80, protocol: UDP, nodePort: 30001}, {port: 81, nodePort: 30003}]}}`, true,
		},
		"a node port that was set from here is changed from here": {
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, nodePort: 30001}]}}`,
			`{apiVersion: v1, kind: Service, ` + ours + `, spec: {ports: [{port: 80, protocol: TCP, nodePort: 30009}]}}`,
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, nodePort: 30001}]}}`, true,
		},
		"a service that asks for none of them": {
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.9.0.9, ports: [{port: 80, nodePort: 30009}]}}`,
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkRetain(t, tc.desired, tc.observed, tc.want, tc.readsLive) })
	}
}

// TestRetainPods checks that pods, and kinds that make or mount them, keep what
// the member decided.
func TestRetainPods(t *testing.T) {
	cases := map[string]struct {
		desired, observed, want string
		readsLive               bool
	}{
		"a pod's node and account": {
			`{apiVersion: v1, kind: Pod, spec: {nodeName: a, serviceAccountName: b, serviceAccount: b, hostname: h}}`,
			`{apiVersion: v1, kind: Pod, spec: {nodeName: z, serviceAccountName: y, serviceAccount: y, hostname: g}}`,
			`{apiVersion: v1, kind: Pod, spec: {hostname: h}}`, true,
		},
		"a pod's node and account where they are the same": {
			`{apiVersion: v1, kind: Pod, spec: {nodeName: a, serviceAccountName: b}}`,
			`{apiVersion: v1, kind: Pod, spec: {nodeName: a, serviceAccountName: b}}`,
			`{apiVersion: v1, kind: Pod, spec: {nodeName: a, serviceAccountName: b}}`, true,
		},
		"a job's selector, and the labels for it": {
			`{apiVersion: batch/v1, kind: Job, spec: {selector: {matchLabels: {controller-uid: hub}}, template: {metadata: {labels: {
  controller-uid: hub, batch.kubernetes.io/controller-uid: hub, job-name: same, batch.kubernetes.io/job-name: hub, app: a}}}}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {selector: {matchLabels: {controller-uid: member}}, template: {metadata: {labels: {
  controller-uid: member, batch.kubernetes.io/controller-uid: member, job-name: same, batch.kubernetes.io/job-name: member, app: z}}}}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {template: {metadata: {labels: {job-name: same, app: a}}}}}`, true,
		},
		"a job's labels alone": {
			`{apiVersion: batch/v1, kind: Job, spec: {template: {metadata: {labels: {job-name: hub}}}}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {template: {metadata: {labels: {job-name: member}}}}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {template: {metadata: {labels: {}}}}}`, true,
		},
		"a job that has neither": {
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, selector: {matchLabels: {controller-uid: member}}}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1}}`, false,
		},
		"a claim's volume": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: a}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: z}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {}}`, true,
		},
		"a volume's claim": {
			`{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: {name: a}}}`,
			`{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: {name: a, uid: u}}}`,
			`{apiVersion: v1, kind: PersistentVolume, spec: {}}`, true,
		},
		"replicas, where the template asks for it": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 1}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 9}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {}}`, true,
		},
		"replicas are the template's else": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 9}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}}`, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkRetain(t, tc.desired, tc.observed, tc.want, tc.readsLive) })
	}
}
