package providers

import (
	"errors"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// Classify gives a forge's error its reason, and one of the classes of loops: what the forge refuses only a person can mend.
func Classify(err error) error {
	var limited *forge.RateLimitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, egress.ErrNotAllowed):
		return loop.Stalled(gitopsv1alpha1.CommitStatusReasonAddressNotAllowed, err)
	case errors.As(err, &limited):
		return loop.Waiting(gitopsv1alpha1.CommitStatusReasonUnreachable, limited.After, err)
	case errors.Is(err, forge.ErrProvider):
		return NotReady(err)
	case errors.Is(err, forge.ErrUnauthorized), errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrStatus):
		return loop.Stalled(gitopsv1alpha1.CommitStatusReasonRefused, err)
	default:
		return loop.Retry(gitopsv1alpha1.CommitStatusReasonUnreachable, err)
	}
}

// states are the forges' words for the states.
var states = map[gitopsv1alpha1.CommitState]forge.State{
	gitopsv1alpha1.CommitPending: forge.Pending,
	gitopsv1alpha1.CommitSuccess: forge.Success,
	gitopsv1alpha1.CommitFailure: forge.Failure,
	gitopsv1alpha1.CommitError:   forge.Failure,
}

// StateOf is a forge's word for the state of a commit. One that could not be tried is a failure to forges.
func StateOf(state gitopsv1alpha1.CommitState) forge.State { return states[state] }
