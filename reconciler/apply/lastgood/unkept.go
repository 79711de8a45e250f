package lastgood

import (
	"fmt"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// AndUnkept adds to a refusal, of a reason if it has none, why what stays meanwhile cannot be kept; nil, and what is the
// reason of the refusal itself, add nothing.
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
