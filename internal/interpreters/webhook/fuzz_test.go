package webhook

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
)

// FuzzAnswer has rules read what a server may send. The object stays what it is,
// whatever that is.
func FuzzAnswer(f *testing.F) {
	const head = `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","response":{"uid":"u","successful":true,`
	operations := []configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationInterpretReplica, configv1alpha1.InterpreterOperationInterpretComponent,
		configv1alpha1.InterpreterOperationReviseReplica, configv1alpha1.InterpreterOperationInterpretStatus,
		configv1alpha1.InterpreterOperationInterpretHealth, configv1alpha1.InterpreterOperationInterpretDependency,
	}
	for _, seed := range []string{
		head + `"replicas":1}}`, head + `"components":[{"name":"a"}]}}`, head + `"rawStatus":{"a":[1]}}}`, head + `"healthy":false}}`,
		head + `"dependencies":[{"apiVersion":"v1","kind":"A","labelSelector":{"matchLabels":{"a":"b"}}}]}}`,
		head + `"patchType":"JSONPatch","patch":"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL3NwZWMvc2l6ZSJ9XQ=="}}`, `{"response":{"uid":"u","successful":true,"replicas":1,"healthy":true}}`, `{}`, `null`, `[`,
	} {
		for i := range operations {
			f.Add(uint8(i), []byte(seed), []byte(`[{"op":"move","from":"/spec","path":"/status"}]`))
		}
	}
	f.Fuzz(func(t *testing.T, op uint8, body, patch []byte) {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"size": int64(3), "list": []any{"a"}},
		}}
		before := obj.DeepCopy()
		q := &sent{uid: "u"}
		q.request.Operation = operations[int(op)%len(operations)]
		if r, err := read(body, q); err == nil {
			_, _ = r.components(), r.dependencies()
			if len(r.patch) > 0 {
				_, _ = apply(obj, r.patch)
			}
		}
		wrapped, err := json.Marshal(configv1alpha1.ResourceInterpreterResponse{
			Patch: patch, PatchType: new(configv1alpha1.PatchTypeJSONPatch),
		})
		if err != nil {
			t.Fatal(err)
		}
		r := &response{ResourceInterpreterResponse: &configv1alpha1.ResourceInterpreterResponse{}}
		if err := json.Unmarshal(wrapped, r.ResourceInterpreterResponse); err != nil {
			t.Fatal(err)
		}
		if r.check(configv1alpha1.InterpreterOperationRetain) == nil && len(r.patch) > 0 {
			if out, err := apply(obj, r.patch); err == nil && out.GetName() != "a" {
				t.Errorf("became another: %v", out)
			}
		}
		if !reflect.DeepEqual(before, obj) {
			t.Errorf("the object was changed: %v", obj)
		}
	})
}
