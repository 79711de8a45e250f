package health_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestHealthOutsideOfTheFleet: what is in a cluster outside of the fleet is judged by its own status, and no policy is looked for.
func TestHealthOutsideOfTheFleet(t *testing.T) {
	for name, tc := range map[string]struct {
		object string // empty: there is none
		checks []kustomize.CustomHealthCheck
		want   health.Verdict // but its object
	}{
		"a Deployment that is available": {
			object: "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: 'True'}]}}",
			want:   health.Verdict{State: rollup.Healthy},
		},
		"a Deployment that nobody has seen": {
			object: "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, generation: 1}, spec: {replicas: 1}}",
			want:   health.Verdict{State: rollup.Progressing, Reason: "Replicas: 0/1"},
		},
		"a ConfigMap":       {object: "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: web}}", want: health.Verdict{State: rollup.Healthy}},
		"it does not exist": {want: health.Verdict{State: rollup.Progressing, Reason: "does not exist"}},
		"an expression that says that it has failed": {
			object: "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: web}, data: {state: broken}}",
			checks: []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "ConfigMap", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "false", Failed: "data.state == 'broken'"}}},
			want:   health.Verdict{State: rollup.Failed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			entry := inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "web"}, Version: "v1"}
			entry.ID.GroupKind.Kind = "ConfigMap"
			cluster := fake.NewClientBuilder().WithScheme(scheme.New())
			if tc.object != "" {
				obj := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(tc.object), &obj.Object); err != nil {
					t.Fatal(err)
				}
				entry.ID, entry.Version = inventory.IDOf(obj), obj.GroupVersionKind().Version
				cluster = cluster.WithObjects(obj)
			}
			tc.want.ID = entry.ID
			found, err := health.New(health.Deps{}).Assess(t.Context(), health.Request{Remote: true, Entries: []inventory.Entry{entry}, As: cluster.Build(), Checks: tc.checks})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(health.Assessment{Verdicts: []health.Verdict{tc.want}}, found, cmp.AllowUnexported(rollup.Replaced{})); diff != "" {
				t.Errorf("health (-want +got):\n%s", diff)
			}
		})
	}
}
