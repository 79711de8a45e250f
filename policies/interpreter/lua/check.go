package lua

import "github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"

// MaxSource is how long a script may be, in bytes.
const MaxSource = sandbox.MaxSource

var (
	// ErrTooLong means that a script has more than MaxSource bytes.
	ErrTooLong = sandbox.ErrTooLong
	// ErrUndefined means that a script compiles, but does not define the function
	// that is called.
	ErrUndefined = sandbox.ErrUndefined
)

// Check compiles source and returns an error unless it defines function:
// ErrTooLong, ErrUndefined, or the compiler's message on one line.
func Check(source, function string) error { return sandbox.Check(source, function) }
