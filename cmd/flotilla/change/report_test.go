package change_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// testPrinted promotes, and then finds promoted, and prints manifests each time: for files
// they have to be whole, and to hold nothing that is the control plane's own.
func testPrinted(t *testing.T, w *world) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "printed"}}
	if err := w.Edge.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "printed", "labels": nil, "annotations": map[string]any{"work.karmada.io/conflict-resolution": "overwrite"}},
		{"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "name": "printed", "labels": nil, "annotations": nil},
	}
	for _, when := range []string{"what is made", "what is there already"} {
		printed := w.direct(t, "configmap", "printed", "-n", "shop", "--policy-name", "printed", "-o", "yaml")
		if printed.Code != 0 || printed.Err != "" {
			t.Fatalf("%s: %+v", when, printed)
		}
		var got []map[string]any
		for _, document := range strings.Split(printed.Out, "---\n") {
			manifest := map[string]any{}
			if err := yaml.Unmarshal([]byte(document), &manifest); err != nil {
				t.Fatal(err)
			}
			meta, _ := manifest["metadata"].(map[string]any)
			got = append(got, map[string]any{"apiVersion": manifest["apiVersion"], "kind": manifest["kind"],
				"name": meta["name"], "labels": meta["labels"], "annotations": meta["annotations"]})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	if got := w.direct(t, "configmap", "printed", "-n", "shop", "--policy-name", "printed", "--undo"); got.Code != 0 {
		t.Errorf("%+v", got)
	}
}
