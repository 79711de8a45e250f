package builder_test

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/sources/build"
)

// token has a Secret with a variable.
type token struct{ client.Reader }

func (token) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.(*corev1.Secret).Data = map[string][]byte{"TOKEN": []byte("hunter2")}
	return nil
}

// TestFilesAreMarked: what is built of files has the same mark of text of a Secret that the apply loop puts there: without
// it, who compares both would see a difference, and print the text.
func TestFilesAreMarked(t *testing.T) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	ks.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
	files := build.NewTree(map[string][]byte{"all.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {token: \"${TOKEN}\"}\n")})
	objects, err := builder.FromFiles(t.Context(), build.New(build.Limits{}), files, builder.Input{Kustomization: ks, As: token{}})
	if err != nil || len(objects) != 1 {
		t.Fatal(err, objects)
	}
	if got := objects[0].GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation]; got != gitopsv1alpha1.HoldsInFields {
		t.Errorf("the mark is %q, want %q", got, gitopsv1alpha1.HoldsInFields)
	}
}
