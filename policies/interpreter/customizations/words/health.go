package words

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Health is a rule that reports whether an object is healthy, or a condition of
// which such rules are made.
type Health = func(kinds.Object) (bool, error)

// All holds where every rule holds.
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

// OneOf holds where any rule holds.
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

// SpecObserved holds where the controller has observed the latest generation.
func SpecObserved(obj kinds.Object) (bool, error) { return rules.SpecObserved(obj), nil }

// Current is SpecObserved for kinds that need not have observedGeneration: it
// holds where that is not set.
func Current(obj kinds.Object) (bool, error) {
	return rules.Value(obj.Object, "status", "observedGeneration") == nil || rules.SpecObserved(obj), nil
}

// IsTrue holds where all of the conditions are true, whatever generation they are
// about.
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

// NotTrue holds where none of the conditions is true.
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

// Word holds where the text at a path is one of words; "" stands for none.
func Word(path string, words ...string) Health {
	return func(obj kinds.Object) (bool, error) {
		return slices.Contains(words, rules.Text(obj.Object, At(path)...)), nil
	}
}

// Asks holds where the boolean at a path is set: what is suspended on purpose is
// as it should be.
func Asks(path string) Health {
	return func(obj kinds.Object) (bool, error) { return rules.Bool(obj.Object, At(path)...), nil }
}

// Enough holds where the number at path is no less than the one at wanted, or
// than none where nothing is set there.
func Enough(path, wanted string, none int64) Health {
	return func(obj kinds.Object) (bool, error) {
		return rules.Number(obj.Object, At(path)...) >= CountOr(none, obj.Object, At(wanted)...), nil
	}
}

// There holds where something is set at a path.
func There(path string) Health {
	return func(obj kinds.Object) (bool, error) { return rules.Value(obj.Object, At(path)...) != nil, nil }
}

// None holds where the number at a path is zero or missing.
func None(path string) Health {
	return func(obj kinds.Object) (bool, error) { return rules.Number(obj.Object, At(path)...) == 0, nil }
}
