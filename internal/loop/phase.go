package loop

import (
	"context"
	"time"
)

// A Phase does one step. It may read objects and change s; it does not write
// the object being reconciled.
type Phase[S any] func(ctx context.Context, s *S) (Next, error)

// Next is what to do after a phase that did not fail. The zero value means
// "go on, and set no timer".
type Next struct {
	// Done skips the phases that follow.
	Done bool
	// After requests another pass after this time; zero sets no timer.
	After time.Duration
}

// Run calls the phases in order. It stops at the first error or Done and
// returns the soonest timer that any phase asked for.
func Run[S any](ctx context.Context, s *S, phases ...Phase[S]) (Next, error) {
	var out Next
	for _, phase := range phases {
		next, err := phase(ctx, s)
		out.After = soonest(out.After, next.After)
		if err != nil || next.Done {
			out.Done = next.Done
			return out, err
		}
	}
	return out, nil
}

// Unless skips phases from the first one on before which something holds, and goes on with what comes after them.
func Unless[S any](holds func(*S) bool, phases ...Phase[S]) Phase[S] {
	return func(ctx context.Context, s *S) (Next, error) {
		var out Next
		for _, phase := range phases {
			if holds(s) {
				break
			}
			next, err := phase(ctx, s)
			out.After = soonest(out.After, next.After)
			if err != nil || next.Done {
				out.Done = next.Done
				return out, err
			}
		}
		return out, nil
	}
}

func soonest(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
