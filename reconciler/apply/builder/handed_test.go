package builder

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/sources/build"
)

// TestWhatIsHandedOnIsMarked: what a Kustomization puts into another one, of a Secret, marks what that one builds, wherever in its spec it is.
func TestWhatIsHandedOnIsMarked(t *testing.T) {
	const (
		config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: \"${X:=y}\"}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
		inner  = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec: {commonMetadata: {labels: {x: y}}, postBuild: {substitute: {Y: x}}}\n"
		patch  = "patches: [{target: {kind: ConfigMap, name: a}, patch: \"- {op: add, path: /data/y, value: '${TOKEN}'}\"}]"
	)
	vars := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "vars"}, Data: map[string][]byte{"TOKEN": []byte("hunter2-7"), "HOST": []byte("example")}}
	as := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(vars).Build()
	parent := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "parent"}}
	parent.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
	run := func(t *testing.T, of *kustomizev1.Kustomization, text string) (marks map[string]string, last *unstructured.Unstructured) {
		t.Helper()
		in := Input{Kustomization: of, As: as, Reveal: func(string) {}}
		objects, err := FromFiles(t.Context(), build.New(build.Limits{}), build.NewTree(map[string][]byte{"x.yaml": []byte(text)}), in)
		if err != nil {
			t.Fatal(err)
		}
		marks = map[string]string{}
		for _, obj := range objects {
			marks[obj.GetName()] = obj.GetAnnotations()["kustomize.flotilla.io/holds-secrets"]
			if where := obj.GetAnnotations()["kustomize.flotilla.io/holds-secrets-in"]; where != "" {
				marks[obj.GetName()] += " in " + where
			}
		}
		return marks, objects[len(objects)-1]
	}
	for name, tc := range map[string]struct {
		spec, files  string
		child, built map[string]string
	}{
		"nothing":                   {"commonMetadata: {labels: {x: y}}", config, map[string]string{"child": ""}, map[string]string{"a": "", "b": ""}},
		"a variable":                {"commonMetadata: {labels: {x: y}}, postBuild: {substitute: {X: \"${TOKEN}\"}}", config, map[string]string{"child": "fields"}, map[string]string{"a": "fields", "b": ""}},
		"common metadata":           {"commonMetadata: {labels: {x: \"v-${TOKEN}\"}}", config, map[string]string{"child": "fields in commonMetadata"}, map[string]string{"a": "fields", "b": "fields"}},
		"the key of a label":        {"commonMetadata: {labels: {\"${TOKEN}\": x}}", config, map[string]string{"child": "fields in commonMetadata"}, map[string]string{"a": "fields", "b": "fields"}},
		"a patch":                   {patch, config, map[string]string{"child": "fields in patches"}, map[string]string{"a": "fields", "b": "fields"}},
		"a patch beside a variable": {patch + ", postBuild: {substitute: {X: \"${HOST}\"}}", config, map[string]string{"child": "fields in patches"}, map[string]string{"a": "fields", "b": "fields"}},
		"a prefix":                  {"namePrefix: \"${TOKEN}-\"", config, map[string]string{"child": "fields in namePrefix"}, map[string]string{"hunter2-7-a": "name", "hunter2-7-b": "name"}},
		"an image":                  {"images: [{name: nginx, newName: \"${HOST}.test/nginx\"}]", config, map[string]string{"child": "fields in images"}, map[string]string{"a": "fields", "b": "fields"}},
		"a path":                    {"path: \"./${HOST}/..\"", config, map[string]string{"child": "fields"}, map[string]string{"a": "", "b": ""}},
		"a patch of another one":    {"patches: [{target: {kind: Kustomization}, patch: \"- {op: add, path: /spec/namePrefix, value: '${TOKEN}'}\"}]", inner, map[string]string{"child": "fields in patches"}, map[string]string{"a": "fields in namePrefix,commonMetadata"}},
	} {
		t.Run(name, func(t *testing.T) {
			marks, last := run(t, parent, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: child, namespace: team}\nspec: {"+tc.spec+"}\n")
			if diff := cmp.Diff(tc.child, marks); diff != "" {
				t.Errorf("the child (-want +got):\n%s", diff)
			}
			var child kustomizev1.Kustomization
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(last.Object, &child); err != nil {
				t.Fatal(err)
			}
			child.Spec.Path = ""
			marks, _ = run(t, &child, tc.files)
			if diff := cmp.Diff(tc.built, marks); diff != "" {
				t.Errorf("what it builds (-want +got):\n%s", diff)
			}
		})
	}
}
