package words

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Health is a rule that judges an object.
type Health = func(kinds.Object) (bool, error)

// All is healthy where every rule says so.
func All(judges ...Health) Health {
	return func(obj kinds.Object) (bool, error) {
		for _, judge := range judges {
			if ok, err := judge(obj); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

// OneOf is healthy where any rule says so.
func OneOf(judges ...Health) Health {
	return func(obj kinds.Object) (bool, error) {
		for _, judge := range judges {
			if ok, err := judge(obj); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

// SpecObserved asks that the controller has seen the latest spec.
func SpecObserved(obj kinds.Object) (bool, error) { return rules.SpecObserved(obj), nil }

// Current asks for that of controllers that say what they have seen.
func Current(obj kinds.Object) (bool, error) {
	return rules.Value(obj.Object, "status", "observedGeneration") == nil || rules.SpecObserved(obj), nil
}

// IsTrue asks for conditions that are true, whatever spec they are about.
func IsTrue(types ...string) Health {
	return func(obj kinds.Object) (bool, error) {
		for _, t := range types {
			if !rules.ConditionTrue(rules.List(obj.Object, "status", "conditions"), t) {
				return false, nil
			}
		}
		return true, nil
	}
}

// NotTrue asks that none of the conditions is true.
func NotTrue(types ...string) Health {
	return func(obj kinds.Object) (bool, error) {
		for _, t := range types {
			if rules.ConditionTrue(rules.List(obj.Object, "status", "conditions"), t) {
				return false, nil
			}
		}
		return true, nil
	}
}

// Word asks for one of the words at a path.
func Word(path string, words ...string) Health {
	return func(obj kinds.Object) (bool, error) {
		return slices.Contains(words, rules.Text(obj.Object, At(path)...)), nil
	}
}

// Asks is healthy where the spec sets a boolean: what is stopped on purpose is
// as it should be.
func Asks(path string) Health {
	return func(obj kinds.Object) (bool, error) { return rules.Bool(obj.Object, At(path)...), nil }
}

// Enough asks that a number is no less than the one at another path, or than a
// number where nothing stands there.
func Enough(path, wanted string, none int64) Health {
	return func(obj kinds.Object) (bool, error) {
		return rules.Number(obj.Object, At(path)...) >= CountOr(none, obj.Object, At(wanted)...), nil
	}
}

// There asks that something stands at a path.
func There(path string) Health {
	return func(obj kinds.Object) (bool, error) { return rules.Value(obj.Object, At(path)...) != nil, nil }
}

// None asks that a number is zero or missing.
func None(path string) Health {
	return func(obj kinds.Object) (bool, error) { return rules.Number(obj.Object, At(path)...) == 0, nil }
}
