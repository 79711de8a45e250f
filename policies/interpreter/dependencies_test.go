package interpreter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

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
		"the default service account is everywhere":     {`{apiVersion: v1, kind: Pod, metadata: {namespace: shop}, spec: {serviceAccountName: default, containers: []}}`, nil},
		"the old name of a service account counts, too": {`{apiVersion: v1, kind: Pod, metadata: {namespace: shop}, spec: {serviceAccount: sa, containers: []}}`, []kinds.Dependency{dep("ServiceAccount", "sa")}},
		"init and ephemeral containers count, too": {
			`{apiVersion: v1, kind: Pod, metadata: {namespace: shop}, spec: {initContainers: [{name: i, envFrom: [{configMapRef: {name: c}}]}], ephemeralContainers: [{name: e, env: [{name: X, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}`,
			[]kinds.Dependency{dep("ConfigMap", "c"), dep("Secret", "s")},
		},
		"drivers of volumes log in with secrets": {
			`{apiVersion: batch/v1, kind: Job, metadata: {namespace: shop}, spec: {template: {spec: {volumes: [
  {name: a, cephfs: {secretRef: {name: a}}}, {name: b, rbd: {secretRef: {name: b}}}, {name: c, iscsi: {secretRef: {name: c}}},
  {name: d, flexVolume: {secretRef: {name: d}}}, {name: e, scaleIO: {secretRef: {name: e}}}, {name: f, storageos: {secretRef: {name: f}}},
  {name: g, azureFile: {secretName: g}}, {name: h, cinder: {secretRef: {name: h}}}, {name: i, csi: {driver: x}},
  {name: j, ephemeral: {volumeClaimTemplate: {spec: {}}}}]}}}}`,
			[]kinds.Dependency{dep("Secret", "a"), dep("Secret", "b"), dep("Secret", "c"), dep("Secret", "d"), dep("Secret", "e"), dep("Secret", "f"), dep("Secret", "g"), dep("Secret", "h")},
		},
		"a service import needs what is derived from it": {
			`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {namespace: shop, name: web}}`,
			[]kinds.Dependency{dep("Service", "derived-web"), {
				APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: "shop",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/service-name": "derived-web"}},
			}},
		},
		"an ingress needs its certificates":        {`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: shop}, spec: {tls: [{secretName: b}, {secretName: a}, {}]}}`, []kinds.Dependency{dep("Secret", "a"), dep("Secret", "b")}},
		"a config map needs nothing that is known": {`{apiVersion: v1, kind: ConfigMap}`, nil},
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

func TestDependenciesOfGarbage(t *testing.T) {
	_, known, err := interpreter.Native().Dependencies(object(t, `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {volumes: 7}}`))
	const want = "dependencies of Pod p: pod spec: cannot restore slice from int64"
	if !known || text(err) != want {
		t.Errorf("known = %v, error = %q, want %q", known, text(err), want)
	}
}
