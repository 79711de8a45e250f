package rules

import (
	"encoding/json"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Value returns the value at the path; nil where there is none.
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

// Number returns the number at the path, truncated to an integer; zero where
// there is none.
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
		i, _ := n.Int64() // zero where it is no integer
		return i
	default:
		return 0
	}
}

// whole truncates a number to an integer, and to the range of an int64.
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

// List returns the list at the path, not as a copy; nil where there is none.
func List(m map[string]any, path ...string) []any {
	l, _ := Value(m, path...).([]any)
	return l
}

// Objects returns those entries of the list at the path that are objects, not as
// copies.
func Objects(m map[string]any, path ...string) []map[string]any {
	var out []map[string]any
	for _, entry := range List(m, path...) {
		if o, ok := entry.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// Object returns the object at the path, not as a copy; nil where there is none.
func Object(m map[string]any, path ...string) map[string]any {
	o, _ := Value(m, path...).(map[string]any)
	return o
}

// Has returns a rule for Retains that reports whether a value is set at the path.
func Has(path ...string) func(kinds.Object) bool {
	return func(obj kinds.Object) bool { return Value(obj.Object, path...) != nil }
}

// Typed converts a part of an object into a T; nil into the zero value.
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

// Canonical returns a copy of a part of an object with only the fields that a T
// has, as API servers write it; false where m is no T.
func Canonical[T any](m map[string]any) (map[string]any, bool) {
	typed, err := Typed[T](m)
	if err != nil {
		return nil, false
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	dropNulls(out)
	return out, err == nil
}

// dropNulls removes fields that are null, as a zero metav1.Time is encoded.
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

// Without returns a copy of obj without the field at the path.
func Without(obj kinds.Object, path ...string) kinds.Object {
	out := obj.DeepCopy()
	unstructured.RemoveNestedField(out.Object, path...)
	return out
}

// StatusOf returns a copy of the object's status that may be changed; never nil.
func StatusOf(obj kinds.Object) map[string]any {
	status := Object(obj.Object, "status")
	if status == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(status)
}
