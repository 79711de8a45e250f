package overview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWhoWroteATemplate: scaling is writing, reporting a status is not, and what the control plane
// notes is nobody's.
func TestWhoWroteATemplate(t *testing.T) {
	type written struct{ Managers, Others []string }
	of := func(fields ...metav1.ManagedFieldsEntry) written {
		template := &unstructured.Unstructured{Object: map[string]any{}}
		template.SetManagedFields(fields)
		return written{managersOf(template), othersOf(template)}
	}
	git := metav1.ManagedFieldsEntry{Manager: "kustomize-controller"}
	for name, tc := range map[string]struct{ got, want written }{
		"nobody who is named": {of(), written{[]string{"somebody unnamed"}, nil}},
		"Git alone":           {of(git, metav1.ManagedFieldsEntry{Manager: "flotillad"}, metav1.ManagedFieldsEntry{Manager: "x", Subresource: "status"}), written{[]string{"kustomize-controller"}, []string{}}},
		"somebody scaled it":  {of(git, metav1.ManagedFieldsEntry{Manager: "kubectl", Subresource: "scale"}), written{[]string{"kubectl", "kustomize-controller"}, []string{"kubectl"}}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
