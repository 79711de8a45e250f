package rules

import (
	"encoding/json"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Value returns what stands at the path; nil where nothing does.
func Value(m map[string]any, path ...string) any {
	var node any = m
	for _, key := range path {
		parent, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = parent[key]
	}
	return node
}

// Number returns the number at the path, without what follows the point; zero
// where there is none.
func Number(m map[string]any, path ...string) int64 {
	switch n := Value(m, path...).(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int:
		return int64(n)
	case float64:
		return whole(n)
	case json.Number:
		i, _ := n.Int64() // zero where it is none
		return i
	default:
		return 0
	}
}

// whole returns the number without what follows the point, as near as an int64
// comes to it.
func whole(n float64) int64 {
	switch {
	case math.IsNaN(n):
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	case n <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(n)
	}
}

// Text returns the string at the path; empty where there is none.
func Text(m map[string]any, path ...string) string {
	s, _ := Value(m, path...).(string)
	return s
}

// Bool returns the boolean at the path; false where there is none.
func Bool(m map[string]any, path ...string) bool {
	b, _ := Value(m, path...).(bool)
	return b
}

// List returns the list at the path, not a copy; nil where there is none.
func List(m map[string]any, path ...string) []any {
	l, _ := Value(m, path...).([]any)
	return l
}

// Objects returns what in the list at the path is an object, not copies.
func Objects(m map[string]any, path ...string) []map[string]any {
	var out []map[string]any
	for _, entry := range List(m, path...) {
		if o, ok := entry.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// Object returns the object at the path, not a copy; nil where there is none.
func Object(m map[string]any, path ...string) map[string]any {
	o, _ := Value(m, path...).(map[string]any)
	return o
}

// Has returns a question whether something stands at the path.
func Has(path ...string) func(kinds.Object) bool {
	return func(obj kinds.Object) bool { return Value(obj.Object, path...) != nil }
}

// Typed converts a part of an object into T; a nil part is the zero value.
func Typed[T any](m map[string]any) (*T, error) {
	out := new(T)
	if m == nil {
		return out, nil
	}
	if err := quantitiesOK(m); err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Canonical returns a copy of a part of an object as servers write a T: without
// fields that T does not have. False where m is no T.
func Canonical[T any](m map[string]any) (map[string]any, bool) {
	typed, err := Typed[T](m)
	if err != nil {
		return nil, false
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	dropNulls(out)
	return out, err == nil
}

// dropNulls removes fields that are null, as those of no time are.
func dropNulls(m map[string]any) {
	for key, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, key)
		case map[string]any:
			dropNulls(v)
		}
	}
}

// Without returns a copy of obj that has nothing at the path.
func Without(obj kinds.Object, path ...string) kinds.Object {
	out := obj.DeepCopy()
	unstructured.RemoveNestedField(out.Object, path...)
	return out
}

// StatusOf returns a copy of the object's status to change; never nil.
func StatusOf(obj kinds.Object) map[string]any {
	status := Object(obj.Object, "status")
	if status == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(status)
}
