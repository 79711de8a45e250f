package kinds

import (
	"errors"
	"fmt"
	"time"
)

// Pending is the error of a rule whose answer has been asked for and has not come
// yet: the same call finds it once it has. It is no fault of the object, and is
// not reported. A rule that aggregates statuses may return it together with the
// status that it gave last, for older reports.
type Pending struct {
	// Of names who was asked.
	Of string
	// After is how long to wait at least before the next call.
	After time.Duration
}

// Error returns a text that names who was asked.
func (p *Pending) Error() string { return fmt.Sprintf("waits for the answer of %s", p.Of) }

// Awaits reports whether err means that an answer is still awaited, and how long
// to wait at least before asking again.
func Awaits(err error) (after time.Duration, ok bool) {
	var p *Pending
	if !errors.As(err, &p) {
		return 0, false
	}
	return p.After, true
}
