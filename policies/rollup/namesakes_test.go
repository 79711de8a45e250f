package rollup_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// template returns an object of one of Kubernetes' own kinds.
func template(kind string) *unstructured.Unstructured {
	version, other := map[string]string{"Job": "batch/v1", "Pod": "v1"}[kind]
	if !other {
		version = "apps/v1"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web", "generation": int64(3)},
	}}
}

// TestNamesakes checks that a kind of another group with the name of one of
// Kubernetes' own is judged by its own rules: Volcano's Job has no conditions.
func TestNamesakes(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind, status string
		health                   workv1alpha2.ResourceHealth
		want                     rollup.State
	}{
		"a Job of Kubernetes that runs": {"batch/v1", "Job", `{"active":1}`, workv1alpha2.ResourceHealthy, rollup.Progressing},
		"another Job that is complete":  {"batch.volcano.sh/v1alpha1", "Job", `{"state":{"phase":"Completed"}}`, workv1alpha2.ResourceHealthy, rollup.Healthy},
		"another Job that has failed":   {"batch.volcano.sh/v1alpha1", "Job", `{"state":{"phase":"Failed"}}`, workv1alpha2.ResourceUnhealthy, rollup.Progressing},
		"a Pod of Kubernetes":           {"v1", "Pod", `{"phase":"Failed"}`, workv1alpha2.ResourceHealthy, rollup.Failed},
		"another Pod":                   {"whales.example.io/v1", "Pod", `{"phase":"Failed"}`, workv1alpha2.ResourceHealthy, rollup.Healthy},
		"a Deployment of Kubernetes":    {"apps/v1", "Deployment", `{"replicas":5,"updatedReplicas":3}`, workv1alpha2.ResourceHealthy, rollup.Progressing},
		"another Deployment":            {"example.io/v1", "Deployment", `{"replicas":5,"updatedReplicas":3}`, workv1alpha2.ResourceHealthy, rollup.Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			object := template(tc.kind)
			object.SetAPIVersion(tc.apiVersion)
			works := []*workv1alpha1.Work{work("a", "True", "", tc.health, tc.status)}
			if got, reason := rollup.PartOf(object, binding(succeeded, "a"), works, nil).Worst(nil); got != tc.want {
				t.Errorf("health = %v %q, want %v", got, reason, tc.want)
			}
		})
	}
}
