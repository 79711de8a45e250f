package words

import (
	"encoding/json"
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Retain is a rule for what the member owns.
type Retain = func(desired, observed kinds.Object) (kinds.Object, error)

// Leave leaves out switches that somebody in the member has turned on, as people
// and tools there do who suspend what they work on. What nobody but us has set
// follows the template, and so does what was turned off again.
func Leave(paths ...string) Retain {
	return func(desired, observed kinds.Object) (kinds.Object, error) {
		for _, path := range paths {
			want := rules.Value(desired.Object, At(path)...)
			if want != nil && want != true && rules.Bool(observed.Object, At(path)...) && foreign(observed, At(path)) {
				desired = rules.Without(desired, At(path)...)
			}
		}
		return desired, nil
	}
}

// Drop leaves out fields that only a member's controllers can know the values
// of, even where the template has a value that was copied from another cluster.
func Drop(paths ...[]string) Retain {
	return func(desired, _ kinds.Object) (kinds.Object, error) {
		for _, path := range paths {
			if rules.Value(desired.Object, path...) != nil {
				desired = rules.Without(desired, path...)
			}
		}
		return desired, nil
	}
}

// Has returns a question whether something stands at one of the paths: only then
// There is anything to leave out.
func Has(paths ...string) func(kinds.Object) bool {
	split := make([][]string, len(paths))
	for i, path := range paths {
		split[i] = At(path)
	}
	return Standing(split...)
}

// Standing is has for paths whose names have points.
func Standing(paths ...[]string) func(kinds.Object) bool {
	return func(obj kinds.Object) bool {
		return slices.ContainsFunc(paths, func(path []string) bool { return rules.Value(obj.Object, path...) != nil })
	}
}

// foreign reports whether the field at a path belongs to somebody but us; an object
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
