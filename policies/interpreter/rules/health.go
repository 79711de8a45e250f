package rules

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// SpecObserved reports whether the object's controller has seen its latest spec.
func SpecObserved(obj kinds.Object) bool {
	return Number(obj.Object, "status", "observedGeneration") == obj.GetGeneration()
}

// unobserved reports whether the object's controller has observed an older spec
// only; false where it does not set observedGeneration.
func unobserved(obj kinds.Object) bool {
	return Value(obj.Object, "status", "observedGeneration") != nil && !SpecObserved(obj)
}

// Ready returns a rule by which an object is healthy once its condition of the
// type is true, and for its latest spec, where the status shows which spec it is
// for.
func Ready(conditionType string) func(kinds.Object) (bool, error) {
	return func(obj kinds.Object) (bool, error) {
		c := Condition(List(obj.Object, "status", "conditions"), conditionType)
		if c == nil || Text(c, "status") != string(corev1.ConditionTrue) || unobserved(obj) {
			return false, nil
		}
		return Value(c, "observedGeneration") == nil || Number(c, "observedGeneration") >= obj.GetGeneration(), nil
	}
}

// RolledOut returns a rule by which an object is healthy once its controller has
// observed its latest spec, has updated at least as many replicas as the number
// at the path, and all updated replicas are available.
func RolledOut(replicas ...string) func(kinds.Object) (bool, error) {
	return func(obj kinds.Object) (bool, error) {
		updated := Number(obj.Object, "status", "updatedReplicas")
		return SpecObserved(obj) && updated >= Number(obj.Object, replicas...) &&
			Number(obj.Object, "status", "availableReplicas") >= updated, nil
	}
}
