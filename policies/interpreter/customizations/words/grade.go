package words

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Grade is how well an object does in a cluster.
type Grade int

const (
	// Failing means that the object has failed, or that nothing in the cluster has
	// taken it up: it may do better in another cluster.
	Failing Grade = iota
	// Waiting means that the object was taken up and is not yet what it should be:
	// it is queued, starting or suspended, or has ended as it should not have. In
	// another cluster it would be the same, or begin anew.
	Waiting
	// Fine means that the object is as it should be.
	Fine
)

// Graded adds the rules Health and Waits, both of which follow from one grade.
func Graded(r kinds.Rules, judge func(kinds.Object) Grade) kinds.Rules {
	r.Health = func(obj kinds.Object) (bool, error) { return judge(obj) != Failing, nil }
	r.Waits = func(obj kinds.Object) bool { return judge(obj) == Waiting }
	return r
}

// Meets reports whether obj meets a condition. An error counts as no.
func Meets(judge Health, obj kinds.Object) bool {
	ok, err := judge(obj)
	return ok && err == nil
}

// ByWord grades by the text at a path: Failing for an empty one and those of bad,
// Fine for those of good, Waiting for any other.
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
