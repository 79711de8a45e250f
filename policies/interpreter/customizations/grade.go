package customizations

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// grade is how an object does in a cluster.
type grade int

const (
	// failing has failed, or nobody in the cluster has taken it up: it may do better
	// elsewhere.
	failing grade = iota
	// waiting was taken up and is not what it should be: queued, starting, held, or
	// ended as it should not have. Elsewhere it would be the same, or begin anew.
	waiting
	// fine is as it should be.
	fine
)

// graded adds the two answers about health that one rule gives.
func graded(r kinds.Rules, judge func(kinds.Object) grade) kinds.Rules {
	r.Health = func(obj kinds.Object) (bool, error) { return judge(obj) != failing, nil }
	r.Waits = func(obj kinds.Object) bool { return judge(obj) == waiting }
	return r
}

// says answers a rule that has no errors.
func says(judge health, obj kinds.Object) bool {
	ok, err := judge(obj)
	return ok && err == nil
}

// byWord grades by the word at a path: one that is not named waits, and none has
// failed.
func byWord(path string, bad, good []string) func(kinds.Object) grade {
	return func(obj kinds.Object) grade {
		switch said := rules.Text(obj.Object, at(path)...); {
		case said == "" || slices.Contains(bad, said):
			return failing
		case slices.Contains(good, said):
			return fine
		default:
			return waiting
		}
	}
}
