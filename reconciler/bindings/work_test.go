package bindings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// TestPatchOfWork applies the patch to what it was made from.
func TestPatchOfWork(t *testing.T) {
	manifest := func(data string) workv1alpha1.Manifest {
		return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","data":` + data + `,"kind":"ConfigMap"}`)}}
	}
	start := func() *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.UID, w.ResourceVersion = "u", "7"
		w.Name, w.Labels, w.Finalizers = "w", map[string]string{"a": "1", "b": "2"}, []string{"f"}
		w.Annotations = map[string]string{"x": "y"}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{manifest(`{"a":"1","b":"2"}`)}
		w.Spec.PreserveResourcesOnDeletion = ptr.To(true)
		w.Status.Applied = []workv1alpha1.AppliedHash{{Desired: "d"}}
		return w
	}
	cases := map[string]struct {
		change    func(w *workv1alpha1.Work)
		manifests bool // whether the patch has them
	}{
		"nothing":       {func(*workv1alpha1.Work) {}, false},
		"a label":       {func(w *workv1alpha1.Work) { w.Labels = map[string]string{"a": "2"} }, false},
		"an annotation": {func(w *workv1alpha1.Work) { w.Annotations = nil }, false},
		"finalizers":    {func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, "g") }, false},
		"a switch":      {func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(bool) }, false},
		"a manifest":    {func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = []workv1alpha1.Manifest{manifest(`{"a":"1"}`)} }, true},
		"a switch and a manifest": {func(w *workv1alpha1.Work) {
			w.Spec.SuspendDispatching = new(bool)
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, manifest(`{}`))
		}, true},
		// What the former author wrote meanwhile must not be attributed to the new one.
		"who applied it": {func(w *workv1alpha1.Work) {
			w.Annotations = map[string]string{"x": "y", workv1alpha2.AppliedByAnnotation: "b"}
		}, true},
		"a switch that was on": {func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = nil }, false},
		"all manifests gone":   {func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			current, desired := start(), start()
			tc.change(desired)
			patch := patchOfWork(t, current, desired)
			if strings.Contains(string(patch), "/spec/workload") != tc.manifests {
				t.Errorf("patch %s", patch)
			}
			got, err := patchedWork(t, current, patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(desired, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPatchOfWorkMeetsOthers applies the patch to what others have made of the Work meanwhile.
func TestPatchOfWorkMeetsOthers(t *testing.T) {
	bare := func() *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.UID, w.ResourceVersion = "u", "7"
		return w
	}
	labelled := func() *workv1alpha1.Work {
		w := bare()
		w.Labels = map[string]string{"a": "1", "b": "2"}
		return w
	}
	labels := func(to map[string]string) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) { w.Labels = to }
	}
	for name, tc := range map[string]struct {
		current func() *workv1alpha1.Work
		desired func(*workv1alpha1.Work)
		others  func(*workv1alpha1.Work)
		want    map[string]string // nil: it is refused
	}{
		"others add a label":                  {labelled, labels(map[string]string{"a": "3"}), labels(map[string]string{"a": "1", "b": "2", "c": "x"}), map[string]string{"a": "3", "c": "x"}},
		"others write the status":             {labelled, labels(map[string]string{"a": "3"}), func(w *workv1alpha1.Work) { w.ResourceVersion = "8" }, map[string]string{"a": "3"}},
		"others took away the same label":     {labelled, labels(map[string]string{"a": "3"}), labels(map[string]string{"a": "1"}), nil},
		"others took away all labels":         {labelled, labels(map[string]string{"a": "3", "b": "2"}), labels(nil), nil},
		"others began labels where none were": {bare, labels(map[string]string{"a": "3"}), func(w *workv1alpha1.Work) { w.ResourceVersion, w.Labels = "8", map[string]string{"c": "x"} }, nil},
		"another Work has the name":           {labelled, labels(map[string]string{"a": "3"}), func(w *workv1alpha1.Work) { w.UID = "v" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			desired, live := tc.current(), tc.current()
			tc.desired(desired)
			tc.others(live)
			got, err := patchedWork(t, live, patchOfWork(t, tc.current(), desired))
			if (err != nil) != (tc.want == nil) {
				t.Fatalf("error %v", err)
			}
			if err == nil {
				if diff := cmp.Diff(tc.want, got.Labels); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func patchOfWork(t *testing.T, current, desired *workv1alpha1.Work) []byte {
	t.Helper()
	patch, err := bindings.PatchOfWork(current, desired)
	if err != nil {
		t.Fatal(err)
	}
	data, err := patch.Data(desired)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// patchedWork applies a patch as the server does.
func patchedWork(t *testing.T, to *workv1alpha1.Work, data []byte) (*workv1alpha1.Work, error) {
	t.Helper()
	before, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, err
	}
	got := &workv1alpha1.Work{}
	if err := json.Unmarshal(after, got); err != nil {
		t.Fatal(err)
	}
	return got, nil
}
