package words

import (
	"encoding/json"
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Retain is a rule that returns desired without what the member owns.
type Retain = func(desired, observed kinds.Object) (kinds.Object, error)

// Leave returns a rule that leaves out booleans that somebody in the member has
// set to true, as people and tools do who suspend an object there. A boolean that
// nobody else has set is applied from the template, and so is one that was unset
// in the member.
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

// Drop returns a rule that leaves out fields whose values only a member's
// controllers can know; a template may have values that were copied from another
// cluster.
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

// Has returns a rule for Retains that reports whether something is set at one of
// the paths: only then is there anything to leave out.
func Has(paths ...string) func(kinds.Object) bool {
	split := make([][]string, len(paths))
	for i, path := range paths {
		split[i] = At(path)
	}
	return Standing(split...)
}

// Standing is Has for paths of which names contain points.
func Standing(paths ...[]string) func(kinds.Object) bool {
	return func(obj kinds.Object) bool {
		return slices.ContainsFunc(paths, func(path []string) bool { return rules.Value(obj.Object, path...) != nil })
	}
}

// foreign reports whether anybody but Flotilla has set the field at a path.
// Without managed fields that is not known, and it reports true.
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
