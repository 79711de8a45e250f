package interpreter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// TestWaits checks that an object that waits may stay, is not shown as healthy,
// and is marked in its reported status. Whether it waits is decided by the layer
// that decides its health.
func TestWaits(t *testing.T) {
	layer := func(r kinds.Rules) kinds.Table {
		return kinds.Table{schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "Crew"}: r}
	}
	health := func(healthy bool) func(kinds.Object) (bool, error) {
		return func(kinds.Object) (bool, error) { return healthy, nil }
	}
	waits := func(kinds.Object) bool { return true }
	type answers struct {
		Health, Shown workv1alpha2.ResourceHealth
		Reported      string
	}
	const well, unwell = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	for name, tc := range map[string]struct {
		layers []kinds.Layer
		want   answers
	}{
		"one that waits":                            {[]kinds.Layer{layer(kinds.Rules{Health: health(true), Waits: waits})}, answers{well, unwell, `{"phase":"Queued","resourceWaiting":true}`}},
		"one that is judged healthy by another":     {[]kinds.Layer{layer(kinds.Rules{Health: health(true)}), layer(kinds.Rules{Health: health(true), Waits: waits})}, answers{well, well, `{"phase":"Queued"}`}},
		"one that has failed":                       {[]kinds.Layer{layer(kinds.Rules{Health: health(false)})}, answers{unwell, unwell, `{"phase":"Queued"}`}},
		"a rule about waiting alone counts nothing": {[]kinds.Layer{layer(kinds.Rules{Waits: waits})}, answers{well, well, `{"phase":"Queued"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "x.io/v1", "kind": "Crew", "status": map[string]any{"phase": "Queued"}}}
			was, know := obj.DeepCopy(), interpreter.New(tc.layers...)
			var got answers
			var err error
			if got.Health, err = know.Health(obj); err != nil {
				t.Fatal(err)
			}
			if got.Shown, err = know.Shown(obj); err != nil {
				t.Fatal(err)
			}
			reported, err := know.ReflectStatus(obj)
			if err != nil {
				t.Fatal(err)
			}
			got.Reported = string(reported.Raw)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(was, obj); diff != "" {
				t.Errorf("the object that came in was changed:\n%s", diff)
			}
		})
	}
}
