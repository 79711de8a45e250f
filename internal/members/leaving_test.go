package members_test

import (
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/members"
)

// TestADefinitionThatLeaves: a member makes nothing of a kind whose definition it deletes, and
// that is no lack of rights.
func TestADefinitionThatLeaves(t *testing.T) {
	env, m, _ := joined(t)
	gvk := schema.GroupVersionKind{Group: "leaving.flotilla.io", Version: "v1", Kind: "Raft"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "rafts." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "rafts", Kind: gvk.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
	if err := env.Hub.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	blocked, late := managed("default", "held", nil), managed("default", "late", nil)
	blocked.SetGroupVersionKind(gvk)
	blocked.SetFinalizers([]string{"example.com/hold"})
	late.SetGroupVersionKind(gvk)
	eventually(t, "one is there", func() error { return env.Hub.Create(t.Context(), blocked) })
	if err := env.Hub.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no other is made", func() error {
		if _, err := m.Apply(t.Context(), late.DeepCopy()); !errors.Is(err, members.ErrDefinitionLeaves) {
			return err
		}
		return nil
	})
	if err := env.Hub.Patch(t.Context(), blocked, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is not served any more", func() error {
		if _, err := m.Apply(t.Context(), late.DeepCopy()); !errors.Is(err, members.ErrNotServed) {
			return errors.Join(errors.New("it is"), err)
		}
		return nil
	})
}
