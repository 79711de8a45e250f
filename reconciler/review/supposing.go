package review

import (
	"context"
	"errors"
	"fmt"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/whatif"
	"github.com/flotilla-io/flotilla/sources/merge"
)

// suppose answers what merges would do once something happens to clusters besides.
func (x examiner) suppose(ctx context.Context, s *state) (loop.Next, error) {
	for _, q := range s.questions {
		if q.command.Verb != gitopsv1alpha1.CommandWhatIf || s.faults.limited() {
			continue
		}
		would, err := x.supposed(ctx, s, q)
		switch {
		case ctx.Err() != nil:
			return loop.Next{}, nil
		case err == nil:
			s.reply(ctx, q, q.command.Foresees(would))
		case lasting(err):
			s.reply(ctx, q, q.command.Answer(foreign(err)))
		default:
			s.faults.add(classify(fmt.Errorf("pull request %d: %w", q.pull.Number, err), s.interval()))
		}
	}
	return loop.Next{}, nil
}

// lasting reports whether an error is what somebody gets to read who has asked: it stays, whenever he asks.
func lasting(err error) bool {
	var conflict *merge.ConflictError
	var unknown *whatif.UnknownError
	return final(err) || errors.Is(err, errMoved) || errors.Is(err, errNotReviewed) || errors.As(err, &conflict) || errors.As(err, &unknown)
}

var errNotReviewed = errors.New("the pull request is not reviewed")

// supposed finds out what a pull request would do.
func (x examiner) supposed(ctx context.Context, s *state, q question) (comparison.Comparison, error) {
	if why := s.refused[q.pull.Number]; why != "" {
		return comparison.Comparison{}, fmt.Errorf("%w: %s", errNotReviewed, why)
	}
	b := s.bases[q.pull.Base]
	if b.err != nil {
		return comparison.Comparison{}, b.err
	}
	at, files, err := b.made.once(ctx, s, b.commit)
	if err != nil {
		return comparison.Comparison{}, err
	}
	next, err := x.merged(ctx, s, q.pull, files)
	if errors.Is(err, errMoved) {
		err = fmt.Errorf("the pull request %w: ask again", err)
	}
	if err != nil {
		return comparison.Comparison{}, err
	}
	var out comparison.Comparison
	err = x.compute(ctx, func(ctx context.Context) error {
		out, err = at.If(ctx, next, q.command.Events)
		return err
	})
	return out, err
}

// compute does something with all processors, for a bounded time.
func (x examiner) compute(ctx context.Context, do func(context.Context) error) error {
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, x.each, errSlow)
	defer cancel()
	err = do(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
