package customizations

import (
	"encoding/json"
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// retain is a rule for what the member owns.
type retain = func(desired, observed kinds.Object) (kinds.Object, error)

// leave leaves out switches that somebody in the member has turned on, as people
// and tools there do who suspend what they work on. What nobody but us has set
// follows the template, and so does what was turned off again.
func leave(paths ...string) retain {
	return func(desired, observed kinds.Object) (kinds.Object, error) {
		for _, path := range paths {
			want := rules.Value(desired.Object, at(path)...)
			if want != nil && want != true && rules.Bool(observed.Object, at(path)...) && foreign(observed, at(path)) {
				desired = rules.Without(desired, at(path)...)
			}
		}
		return desired, nil
	}
}

// drop leaves out fields that only a member's controllers can know the values
// of, even where the template has a value that was copied from another cluster.
func drop(paths ...[]string) retain {
	return func(desired, _ kinds.Object) (kinds.Object, error) {
		for _, path := range paths {
			if rules.Value(desired.Object, path...) != nil {
				desired = rules.Without(desired, path...)
			}
		}
		return desired, nil
	}
}

// has returns a question whether something stands at one of the paths: only then
// there is anything to leave out.
func has(paths ...string) func(kinds.Object) bool {
	split := make([][]string, len(paths))
	for i, path := range paths {
		split[i] = at(path)
	}
	return standing(split...)
}

// standing is has for paths whose names have points.
func standing(paths ...[]string) func(kinds.Object) bool {
	return func(obj kinds.Object) bool {
		return slices.ContainsFunc(paths, func(path []string) bool { return rules.Value(obj.Object, path...) != nil })
	}
}

// foreign says whether the field at a path belongs to somebody but us; an object
// that does not say whom its fields belong to may be anybody's.
func foreign(observed kinds.Object, path []string) bool {
	managers := observed.GetManagedFields()
	fields := make([]string, len(path))
	for i, name := range path {
		fields[i] = "f:" + name
	}
	for _, entry := range managers {
		if entry.Manager == rules.Manager || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]any
		if json.Unmarshal(entry.FieldsV1.Raw, &owned) == nil && rules.Value(owned, fields...) != nil {
			return true
		}
	}
	return len(managers) == 0
}
