package interpreter

import "fmt"

// Reason is the stable reason of conditions and events that an Error stands
// behind.
const Reason = "InterpreterFailed"

// Error says that a rule for a kind failed for one object. A rule whose answer
// is on its way fails with one, too: kinds.Awaits distinguishes the two.
type Error struct {
	// Operation in words: "replicas", "retain", "health", …
	Operation string
	// Kind and Name of the object.
	Kind, Name string
	Err        error
}

// Error says what failed for which object, and why.
func (e *Error) Error() string {
	return fmt.Sprintf("%s of %s %s: %v", e.Operation, e.Kind, e.Name, e.Err)
}

// Unwrap returns the error of the rule.
func (e *Error) Unwrap() error { return e.Err }
