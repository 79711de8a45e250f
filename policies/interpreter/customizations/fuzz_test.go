package customizations_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// endure calls all rules with objects of any form. Results and errors are both
// fine; panics, and changes of the objects that come in, are not.
func endure(t *testing.T, know *interpreter.Interpreter, template, member kinds.Object) {
	t.Helper()
	wasTemplate, wasMember := template.DeepCopy(), member.DeepCopy()
	n, _, _, err := know.Replicas(template)
	if err == nil && n < 0 {
		t.Errorf("%d replicas", n)
	}
	parts, _, err := know.Components(template)
	for _, p := range parts {
		if err == nil && (p.Name == "" || len(p.Name) > 32 || p.Replicas < 0) {
			t.Errorf("component %q of %d", p.Name, p.Replicas)
		}
	}
	for _, n := range []int32{0, 1, 7} {
		_, _, _ = know.Revise(template, n)
	}
	_, _ = know.Retain(template, member)
	_, _ = know.Health(member)
	_, _, _ = know.Dependencies(template)
	total(t, know, template, member)
	if !reflect.DeepEqual(wasTemplate, template) || !reflect.DeepEqual(wasMember, member) {
		t.Error("an object that came in was changed")
	}
}

// total aggregates the status of the member and that of a cluster that reports
// none, twice and in both orders.
func total(t *testing.T, know *interpreter.Interpreter, template, member kinds.Object) {
	t.Helper()
	status, err := know.ReflectStatus(member)
	if err != nil {
		return
	}
	reported := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m1", Status: status}, {ClusterName: "m2"}, {ClusterName: "m3", Status: status},
	}
	sum, changed, err := know.AggregateStatus(template, reported)
	if err != nil || !changed {
		return
	}
	slices.Reverse(reported)
	other, _, _ := know.AggregateStatus(template, reported)
	if !reflect.DeepEqual(sum, other) {
		t.Errorf("another order of clusters makes a difference:\n%s", cmp.Diff(sum, other))
	}
	if _, err := json.Marshal(sum); err != nil {
		t.Errorf("the status cannot be sent: %v", err)
	}
	again := template.DeepCopy()
	again.Object["status"] = runtime.DeepCopyJSON(sum)
	if converged, changed, _ := know.AggregateStatus(again, reported); changed {
		t.Errorf("aggregating twice is not aggregating once:\n%s", cmp.Diff(sum, converged))
	}
}

// odd returns values that no field is expected to have.
func odd() []any {
	return []any{nil, int64(-1), 1e300, "x", true, []any{nil, int64(1), "x"}, map[string]any{"name": int64(1)}}
}

// TestOddShapes puts odd values into every field of every example.
func TestOddShapes(t *testing.T) {
	know := interpreter.New(customizations.Table())
	for _, e := range examples(t) {
		t.Run(strings.TrimPrefix(e.Dir, "testdata/"), func(t *testing.T) {
			member := e.Members[len(e.Members)-1]
			for _, v := range odd() {
				for i := range places(e.Template.Object) {
					endure(t, know, placed(e.Template, i, v), member)
				}
				for i := range places(member.Object) {
					endure(t, know, e.Template, placed(member, i, v))
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// place is a field of an object, or an entry of a list, that can be set.
type place func(v any)

// places returns all places of an object below spec, status and labels, in an
// order that is always the same.
func places(obj map[string]any) []place {
	var out []place
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(node)) {
				out = append(out, func(v any) { node[key] = v })
				walk(node[key])
			}
		case []any:
			for i := range node {
				out = append(out, func(v any) { node[i] = v })
				walk(node[i])
			}
		}
	}
	for _, field := range []string{"spec", "status"} {
		out = append(out, func(v any) { obj[field] = v })
		walk(obj[field])
	}
	return out
}

// placed returns a copy of an object with v in one of its places.
func placed(obj kinds.Object, at int, v any) kinds.Object {
	out := obj.DeepCopy()
	places(out.Object)[at](runtime.DeepCopyJSONValue(v))
	return out
}

// FuzzRules checks that no object crashes a rule, whatever its form.
func FuzzRules(f *testing.F) {
	table := customizations.Table()
	all := slices.SortedFunc(maps.Keys(table), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(written(a), written(b))
	})
	for _, e := range examples(f) {
		text, err := json.Marshal(e.Members[0].Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(slices.Index(all, e.GVK())))
	}
	f.Add([]byte(`{"spec":{"jobManager":{"resource":{"cpu":1e300,"memory":"9999999999999g"}},"job":{"parallelism":9e18}}}`), uint8(20))
	know := interpreter.New(table)
	f.Fuzz(func(t *testing.T, text []byte, kind uint8) {
		var content map[string]any
		if utiljson.Unmarshal(text, &content) != nil || content == nil {
			return
		}
		obj := &unstructured.Unstructured{Object: content}
		if _, ok := content["metadata"].(map[string]any); !ok {
			delete(content, "metadata")
		}
		obj.SetGroupVersionKind(all[int(kind)%len(all)])
		endure(t, know, obj, obj.DeepCopy())
	})
}
