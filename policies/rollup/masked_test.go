package rollup_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestANameThatHoldsASecretIsMasked checks that a name that contains text of a
// Secret is not sent to a forge.
func TestANameThatHoldsASecretIsMasked(t *testing.T) {
	for holds, want := range map[string]string{
		gitopsv1alpha1.HoldsInName:   "Deployment shop/***",
		gitopsv1alpha1.HoldsInFields: "Deployment shop/d-canary",
		"":                           "Deployment shop/d-canary",
	} {
		template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
			"namespace": "shop", "name": "d-canary", "annotations": map[string]any{gitopsv1alpha1.HoldsSecretsAnnotation: holds},
		}}}
		if got := rollup.PartOf(template, nil, nil, nil).Object; got != want {
			t.Errorf("marked with %q: named %q, want %q", holds, got, want)
		}
	}
}
