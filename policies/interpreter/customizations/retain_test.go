package customizations_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// TestSuspended checks that what somebody in a member suspended stays so until it
// is resumed there; from then on the template's value is applied again.
func TestSuspended(t *testing.T) {
	cases := map[string]struct {
		template, member bool
		by               string
		want             any // what is applied
	}{
		"suspended in the member":                         {false, true, "flux", nil},
		"suspended in the template":                       {true, false, "flotilla", true},
		"suspended in the template, resumed there before": {true, false, "flux", true},
		"resumed in the template":                         {false, true, "flotilla", false},
		"suspended in both":                               {true, true, "flux", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := func(suspend bool) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
					"metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": map[string]any{"suspend": suspend},
				}}
			}
			desired, observed := object(tc.template), object(tc.member)
			observed.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: tc.by, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:suspend":{}}}`)},
			}})
			got, err := customizations.Table()[desired.GroupVersionKind()].Retain(desired, observed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Object["spec"].(map[string]any)["suspend"]); diff != "" {
				t.Errorf("what is applied (-want +got):\n%s", diff)
			}
		})
	}
}
