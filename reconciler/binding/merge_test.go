package binding

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestPatchOf applies the patch to what it was made from.
func TestPatchOf(t *testing.T) {
	manifest := func(data string) workv1alpha1.Manifest {
		return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","data":` + data + `,"kind":"ConfigMap"}`)}}
	}
	start := func() *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Name, w.Labels, w.Finalizers = "w", map[string]string{"a": "1", "b": "2"}, []string{"f"}
		w.Annotations = map[string]string{"x": "y"}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{manifest(`{"a":"1","b":"2"}`)}
		w.Status.Applied = []workv1alpha1.AppliedHash{{Desired: "d"}}
		return w
	}
	cases := map[string]struct {
		change func(w *workv1alpha1.Work)
		says   string // that the patch has manifests
	}{
		"nothing":       {func(*workv1alpha1.Work) {}, ""},
		"a label":       {func(w *workv1alpha1.Work) { w.Labels = map[string]string{"a": "2"} }, ""},
		"an annotation": {func(w *workv1alpha1.Work) { w.Annotations = nil }, ""},
		"finalizers":    {func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, "g") }, ""},
		"a switch":      {func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(bool) }, ""},
		"a manifest":    {func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = []workv1alpha1.Manifest{manifest(`{"a":"1"}`)} }, "manifests"},
		"a switch and a manifest": {func(w *workv1alpha1.Work) {
			w.Spec.SuspendDispatching = new(bool)
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, manifest(`{}`))
		}, "manifests"},
		// What the former author wrote meanwhile must not be attributed to the new one.
		"who applied it": {func(w *workv1alpha1.Work) {
			w.Annotations = map[string]string{"x": "y", workv1alpha2.AppliedByAnnotation: "b"}
		}, "manifests"},
		"all manifests gone": {func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil }, "manifests"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			current, desired := start(), start()
			tc.change(desired)
			patch, err := patchOf(current, desired)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(patch), "manifests") != (tc.says != "") {
				t.Errorf("patch %s", patch)
			}
			before, err := json.Marshal(current)
			if err != nil {
				t.Fatal(err)
			}
			after, err := jsonpatch.MergePatch(before, patch)
			if err != nil {
				t.Fatal(err)
			}
			got := &workv1alpha1.Work{}
			if err := json.Unmarshal(after, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(desired, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
