package customizations

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// health is a rule that judges an object.
type health = func(kinds.Object) (bool, error)

// all is healthy where every rule says so.
func all(judges ...health) health {
	return func(obj kinds.Object) (bool, error) {
		for _, judge := range judges {
			if ok, err := judge(obj); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

// oneOf is healthy where any rule says so.
func oneOf(judges ...health) health {
	return func(obj kinds.Object) (bool, error) {
		for _, judge := range judges {
			if ok, err := judge(obj); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

// settled asks that the controller has seen the latest spec.
func settled(obj kinds.Object) (bool, error) { return rules.Settled(obj), nil }

// current asks for that of controllers that say what they have seen.
func current(obj kinds.Object) (bool, error) {
	return rules.Value(obj.Object, "status", "observedGeneration") == nil || rules.Settled(obj), nil
}

// isTrue asks for conditions that are true, whatever spec they are about.
func isTrue(types ...string) health {
	return func(obj kinds.Object) (bool, error) {
		for _, t := range types {
			if !rules.ConditionTrue(rules.List(obj.Object, "status", "conditions"), t) {
				return false, nil
			}
		}
		return true, nil
	}
}

// notTrue asks that none of the conditions is true.
func notTrue(types ...string) health {
	return func(obj kinds.Object) (bool, error) {
		for _, t := range types {
			if rules.ConditionTrue(rules.List(obj.Object, "status", "conditions"), t) {
				return false, nil
			}
		}
		return true, nil
	}
}

// word asks for one of the words at a path.
func word(path string, words ...string) health {
	return func(obj kinds.Object) (bool, error) {
		return slices.Contains(words, rules.Text(obj.Object, at(path)...)), nil
	}
}

// asks is healthy where the spec sets a boolean: what is stopped on purpose is
// as it should be.
func asks(path string) health {
	return func(obj kinds.Object) (bool, error) { return rules.Bool(obj.Object, at(path)...), nil }
}

// enough asks that a number is no less than the one at another path, or than a
// number where nothing stands there.
func enough(path, wanted string, none int64) health {
	return func(obj kinds.Object) (bool, error) {
		return rules.Number(obj.Object, at(path)...) >= countOr(none, obj.Object, at(wanted)...), nil
	}
}

// there asks that something stands at a path.
func there(path string) health {
	return func(obj kinds.Object) (bool, error) { return rules.Value(obj.Object, at(path)...) != nil, nil }
}

// none asks that a number is zero or missing.
func none(path string) health {
	return func(obj kinds.Object) (bool, error) { return rules.Number(obj.Object, at(path)...) == 0, nil }
}
