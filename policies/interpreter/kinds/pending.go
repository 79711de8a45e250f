package kinds

import (
	"errors"
	"fmt"
	"time"
)

// Pending is the error of a rule whose answer is on its way: it was asked for,
// and the same question finds the answer once it has come. It is no fault of
// the object, and no reason to report anything. A rule that adds statuses up may
// return it with a status: the one that held a moment ago, for the statuses of then.
type Pending struct {
	// Of says who is asked.
	Of string
	// After is when to ask again, at the earliest.
	After time.Duration
}

// Error says who is waited for.
func (p *Pending) Error() string { return fmt.Sprintf("waits for the answer of %s", p.Of) }

// Awaits reports whether err means that an answer is on its way, and when to ask
// again.
func Awaits(err error) (after time.Duration, ok bool) {
	var p *Pending
	if !errors.As(err, &p) {
		return 0, false
	}
	return p.After, true
}
