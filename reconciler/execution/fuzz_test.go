package execution

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
)

// manifestSeeds are manifests that JSON parsers read differently.
var manifestSeeds = []string{
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"},"data":{"k":"v"}}`,
	``, `null`, `{}`, `[]`, `"x"`, `{"apiVersion":"v1","kind":"ConfigMap"}`, `{"apiVersion":"a/b/c","kind":"X","metadata":{"name":"a"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","Metadata":{"name":"a"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"METADATA":{"name":"b"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","NAME":"b"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","KIND":"Secret","metadata":{"name":"a"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"metadata":{"name":"b"}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"metadata":{"namespace":"b"}}`,
	`{"apiVersion":"v1","kind":"List","metadata":{"name":"a"},"items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}]}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":7,"annotations":{"x":7}}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":null,"annotations":[]}}`,
	`{"apiVersion":7,"kind":{},"metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":7}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":7}}`, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}} {}`,
	`{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"n":1e400}`, `{"apiVersion":"v1","kind":"X","metadata":{"name":"\ud800"}}`,
	`{"apiVersion":"v1","kind":"X","metadata":{"name":"a","creationTimestamp":"x"}}`,
}

// FuzzManifest: the identity that is parsed from a manifest is that of the object that is sent to the member.
func FuzzManifest(f *testing.F) {
	for _, seed := range manifestSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := manifest.Parse(0, raw)
		if m.Err != nil {
			return
		}
		work := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w"},
			Spec:       workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}},
		}
		id, err := ownermeta.Identify(raw)
		if err != nil {
			t.Fatalf("%s is carried, and does not parse: %v", raw, err)
		}
		var whole unstructured.Unstructured
		if whole.UnmarshalJSON(raw) != nil {
			return
		}
		if got := client.ObjectKeyFromObject(&whole); got != id.Key || whole.GroupVersionKind() != id.Kind {
			t.Errorf("%s is taken for %v, and %v %v is read", raw, id, whole.GroupVersionKind(), got)
		}
		obj, err := m.Object(work)
		if err != nil {
			t.Fatalf("%s cannot be sent: %v", raw, err)
		}
		if got := (types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}); got != m.Key || obj.GroupVersionKind() != m.GVK {
			t.Errorf("%s is taken for %v %v, and %v %v is sent", raw, m.GVK, m.Key, obj.GroupVersionKind(), got)
		}
		if obj.GetLabels()["karmada.io/managed"] != "true" || obj.GetAnnotations()["work.karmada.io/name"] != "w" {
			t.Errorf("%s is sent without a mark: %v %v", raw, obj.GetLabels(), obj.GetAnnotations())
		}
		if _, err := obj.MarshalJSON(); err != nil {
			t.Errorf("%s cannot be sent: %v", raw, err)
		}
		_ = m.Title()
	})
}
