package lastgood

import (
	"fmt"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// AndUnkept adds to the refusal of a revision why drift from the last good one could not be corrected. It adds nothing
// if why is nil or says the same as the refusal. reason is for a refusal that has none of its own.
func AndUnkept(refusal error, reason string, why error) error {
	if why == nil {
		return refusal
	}
	outcome := loop.As(refusal, reason)
	if outcome.Err.Error() == why.Error() {
		return refusal
	}
	return &loop.Error{Reason: outcome.Reason, Class: outcome.Class, After: outcome.After, Err: fmt.Errorf("%w; and what stays meanwhile cannot be kept as it was: %w", outcome.Err, why)}
}
