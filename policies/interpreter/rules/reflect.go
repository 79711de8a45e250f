package rules

import (
	"maps"
	"slices"
	"strconv"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// ReflectAll reports the whole status; nil where there is none.
func ReflectAll(observed kinds.Object) (map[string]any, error) {
	return Object(observed.Object, "status"), nil
}

// Reflect returns a rule that reports the named fields of the status.
func Reflect(names ...string) func(kinds.Object) (map[string]any, error) {
	return func(observed kinds.Object) (map[string]any, error) {
		status := Object(observed.Object, "status")
		if status == nil {
			return nil, nil
		}
		out := make(map[string]any, len(names))
		for _, name := range names {
			if v, ok := status[name]; ok {
				out[name] = v
			}
		}
		return out, nil
	}
}

// ReflectTracked returns a rule that reports the named fields and the generations
// that they are about: that of the member's object, the one that its controller
// has observed, and that of the template.
func ReflectTracked(names ...string) func(kinds.Object) (map[string]any, error) {
	return Track(Reflect(append(slices.Clone(names), FieldObservedGeneration)...))
}

// Track adds to what another rule reports the generations of the member's object
// and of the template.
func Track(reflect func(kinds.Object) (map[string]any, error)) func(kinds.Object) (map[string]any, error) {
	return func(observed kinds.Object) (map[string]any, error) {
		status, err := reflect(observed)
		if status == nil || err != nil {
			return nil, err
		}
		out := maps.Clone(status)
		out[FieldGeneration] = observed.GetGeneration()
		out[FieldTemplateGeneration] = templateGeneration(observed)
		return out, nil
	}
}

// templateGeneration returns the generation of the template from which a member's
// object was made; zero where its annotation is missing or no number.
func templateGeneration(observed kinds.Object) int64 {
	n, err := strconv.ParseInt(observed.GetAnnotations()[workv1alpha2.ResourceTemplateGenerationAnnotationKey], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
