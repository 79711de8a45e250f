package native

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// WholeStatus reports the whole status; nil where there is none.
func WholeStatus(observed kinds.Object) (map[string]any, error) {
	return object(observed.Object, "status"), nil
}

// reflectFields reports the named fields of the status.
func reflectFields(names ...string) func(kinds.Object) (map[string]any, error) {
	return func(observed kinds.Object) (map[string]any, error) {
		status := object(observed.Object, "status")
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

// Fields of a reported status that say which spec it is about.
const (
	fieldGeneration         = "generation"
	fieldTemplateGeneration = "resourceTemplateGeneration"
	fieldObservedGeneration = "observedGeneration"
)

// reflectTracked reports the named fields and which generation they are about.
func reflectTracked(names ...string) func(kinds.Object) (map[string]any, error) {
	pick := reflectFields(append(names, fieldObservedGeneration)...)
	return func(observed kinds.Object) (map[string]any, error) {
		out, err := pick(observed)
		if out == nil || err != nil {
			return nil, err
		}
		out[fieldGeneration] = observed.GetGeneration()
		out[fieldTemplateGeneration] = templateGeneration(observed)
		return out, nil
	}
}

// reflectService reports the addresses of a load balancer.
func reflectService(observed kinds.Object) (map[string]any, error) {
	if text(observed.Object, "spec", "type") != string(corev1.ServiceTypeLoadBalancer) {
		return nil, nil
	}
	return reflectFields("loadBalancer")(observed)
}
