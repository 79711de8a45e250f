package native

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// value returns what stands at the path; nil where nothing does.
func value(m map[string]any, path ...string) any {
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

func number(m map[string]any, path ...string) int64 { return toNumber(value(m, path...)) }

func toNumber(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int:
		return int64(n)
	case float64:
		return int64(n)
	case json.Number:
		i, _ := n.Int64() // zero where it is none
		return i
	default:
		return 0
	}
}

func text(m map[string]any, path ...string) string {
	s, _ := value(m, path...).(string)
	return s
}

func list(m map[string]any, path ...string) []any {
	l, _ := value(m, path...).([]any)
	return l
}

func object(m map[string]any, path ...string) map[string]any {
	o, _ := value(m, path...).(map[string]any)
	return o
}

// has returns a question whether something stands at the path.
func has(path ...string) func(kinds.Object) bool {
	return func(obj kinds.Object) bool { return value(obj.Object, path...) != nil }
}

// typed converts a part of an object into T.
func typed[T any](m map[string]any) (*T, error) {
	out := new(T)
	if m == nil {
		return out, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, out); err != nil {
		return nil, err
	}
	return out, nil
}

// itemStatus returns the status that a cluster reports; nil where it reports
// none.
func itemStatus(item *workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
	if item.Status == nil || len(item.Status.Raw) == 0 {
		return nil, nil
	}
	var out map[string]any
	if err := utiljson.Unmarshal(item.Status.Raw, &out); err != nil {
		return nil, fmt.Errorf("status of cluster %s: %w", item.ClusterName, err)
	}
	return out, nil
}

// part is what one cluster reports.
type part struct {
	cluster string
	// status is nil where the cluster reports none.
	status map[string]any
}

func parts(items []workv1alpha2.AggregatedStatusItem) ([]part, error) {
	out := make([]part, len(items))
	for i := range items {
		status, err := itemStatus(&items[i])
		if err != nil {
			return nil, err
		}
		out[i] = part{items[i].ClusterName, status}
	}
	return out, nil
}

// statusOf returns a copy of the object's status to change; never nil.
func statusOf(obj kinds.Object) map[string]any {
	status := object(obj.Object, "status")
	if status == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(status)
}

// templateGeneration is the generation of the template that a member's object
// was made from; zero where it does not say.
func templateGeneration(observed kinds.Object) int64 {
	n, err := strconv.ParseInt(observed.GetAnnotations()[workv1alpha2.ResourceTemplateGenerationAnnotationKey], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func without(obj kinds.Object, path ...string) kinds.Object {
	out := obj.DeepCopy()
	unstructured.RemoveNestedField(out.Object, path...)
	return out
}
