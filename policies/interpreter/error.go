package interpreter

import "fmt"

// Reason is the reason of conditions and events that report an Error.
const Reason = "InterpreterFailed"

// Error is the error of a rule that failed for one object. A rule whose answer is
// still awaited fails with an Error, too: kinds.Awaits distinguishes the two.
type Error struct {
	// Operation is what was asked for, such as "replicas", "retain" or "health".
	Operation string
	// Kind and Name of the object.
	Kind, Name string
	Err        error
}

// Error returns which operation failed for which object, and why.
func (e *Error) Error() string {
	return fmt.Sprintf("%s of %s %s: %v", e.Operation, e.Kind, e.Name, e.Err)
}

// Unwrap returns the error of the rule.
func (e *Error) Unwrap() error { return e.Err }
