package words

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Grade is how an object does in a cluster.
type Grade int

const (
	// Failing has failed, or nobody in the cluster has taken it up: it may do better
	// elsewhere.
	Failing Grade = iota
	// Waiting was taken up and is not what it should be: queued, starting, held, or
	// ended as it should not have. Elsewhere it would be the same, or begin anew.
	Waiting
	// Fine is as it should be.
	Fine
)

// Graded adds the two answers about health that one rule gives.
func Graded(r kinds.Rules, judge func(kinds.Object) Grade) kinds.Rules {
	r.Health = func(obj kinds.Object) (bool, error) { return judge(obj) != Failing, nil }
	r.Waits = func(obj kinds.Object) bool { return judge(obj) == Waiting }
	return r
}

// Meets evaluates a rule that has no errors.
func Meets(judge Health, obj kinds.Object) bool {
	ok, err := judge(obj)
	return ok && err == nil
}

// ByWord grades by the word at a path: one that is not named waits, and none has
// failed.
func ByWord(path string, bad, good []string) func(kinds.Object) Grade {
	return func(obj kinds.Object) Grade {
		switch word := rules.Text(obj.Object, At(path)...); {
		case word == "" || slices.Contains(bad, word):
			return Failing
		case slices.Contains(good, word):
			return Fine
		default:
			return Waiting
		}
	}
}
