package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/reconciler/forecast/rehearsal"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/merge"
)

// examine looks at those that are due, some side by side, until the pass has no more time to begin with others.
func (r *Reconciler) examine(ctx context.Context, s *state) (loop.Next, error) {
	var (
		next  loop.Next
		mu    sync.Mutex
		begun = r.opts.Clock.Now()
		done  sync.WaitGroup
		x     = examiner{r.opts.Limits.Each}
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case len(s.due) == 0 || ctx.Err() != nil || s.faults.limited():
			return 0, false
		case r.opts.Clock.Since(begun) >= r.opts.Limits.Pass || overtaken(ctx, r.deps.Hub, s):
			next.After = soon
			return 0, false
		}
		i := s.due[0]
		s.due = s.due[1:]
		return i, true
	}
	for range r.opts.Limits.Side {
		done.Go(func() {
			for {
				i, is := take()
				if !is {
					return
				}
				if again := x.one(ctx, s, s.pulls[i], &s.object.Status.PullRequests[i]); again {
					mu.Lock()
					next.After = soon
					mu.Unlock()
				}
			}
		})
	}
	done.Wait()
	return next, nil
}

// examiner looks at single pull requests, at each for a bounded time.
type examiner struct{ each time.Duration }

// one reviews one pull request, and tells the forge. It reports whether it is to be looked at again soon.
func (x examiner) one(ctx context.Context, s *state, p forge.PullRequest, entry *gitopsv1alpha1.ReviewedPullRequest) (again bool) {
	now := s.subject(p)
	about := review.About{Head: p.Head, Onto: now.Base, Branch: p.Base, Fleet: now.Fleet}
	verdict, err := x.judge(ctx, s, p, about)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, errMoved):
		entry.Message = err.Error()
		return true
	case final(err):
		verdict = review.Refused(about, foreign(err))
	case err != nil:
		s.tell(ctx, entry, gitopsv1alpha1.CommitPending, "cannot be looked at now, and is tried again: see the PullRequestReview "+s.object.Name)
		entry.Message = foreign(err)
		s.faults.add(fmt.Errorf("pull request %d: %w", p.Number, err))
		return false
	}
	entry.Of, entry.Summary, entry.BrokenRules, entry.Message = &now, verdict.Summary, verdict.Broken, verdict.Description
	if s.faults.limited() {
		return false
	}
	at, err := s.forge.Comment(ctx, forge.Comment{Commit: p.Head, Key: keyOf(s.object), Body: verdict.Comment, At: forge.CommentRef{PullRequest: p.Number, ID: entry.CommentID}})
	if err != nil {
		s.faults.add(classify(fmt.Errorf("pull request %d: %w", p.Number, err), s.interval()))
		return false
	}
	entry.CommentID = at.ID
	if entry.Approvals = verdict.Needed; verdict.State == gitopsv1alpha1.CommitSuccess && len(verdict.Needed) > 0 {
		entry.Phase = gitopsv1alpha1.ReviewAwaiting // it is told once it is known who approves
		return false
	}
	if s.tell(ctx, entry, verdict.State, verdict.Description) {
		entry.Phase = gitopsv1alpha1.ReviewPassed
		if verdict.State != gitopsv1alpha1.CommitSuccess {
			entry.Phase = gitopsv1alpha1.ReviewFailed
		}
	}
	return false
}

// keyOf is what a comment is found again by. Nobody outside of the control plane knows it.
func keyOf(object *gitopsv1alpha1.PullRequestReview) string { return string(object.UID) + "/review" }

// What ends the look at a pull request.
var (
	errMoved = errors.New("has changed meanwhile")
	errSlow  = errors.New("it takes too long to build and to compare: make it smaller")
)

// final reports whether an error is a pull request's own, and comes again until somebody changes it.
func final(err error) bool {
	for _, own := range []error{errSlow, git.ErrNoMergeBase, git.ErrTooLarge, artifact.ErrTooLarge, artifact.ErrMalformed} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// mostMessage is how long a message of the status is, in bytes.
const mostMessage = 500

// foreign returns the text of an error in which words of others may be.
func foreign(err error) string { return excerpt.Message(strings.TrimSpace(err.Error()), mostMessage) }

// judge finds out what a pull request would do.
func (x examiner) judge(ctx context.Context, s *state, p forge.PullRequest, about review.About) (review.Verdict, error) {
	b := s.bases[p.Base]
	at, files, err := b.made.once(ctx, s, b.commit)
	if err != nil {
		return review.Verdict{}, err
	}
	next, err := x.merged(ctx, s, p, files)
	var conflict *merge.ConflictError
	if errors.As(err, &conflict) {
		return review.Conflict(about, conflict.Paths), nil
	}
	if err != nil {
		return review.Verdict{}, err
	}
	var c comparison.Comparison
	var broken []review.Broken
	err = x.compute(ctx, func(ctx context.Context) error {
		if c, err = at.With(ctx, next); err == nil {
			broken, err = review.Ask(ctx, s.terms.rules, c, s.fleet.Clusters())
		}
		return err
	})
	if err != nil {
		return review.Verdict{}, err
	}
	needed, err := b.needed(ctx, s, change{files, next.Files, c})
	if err != nil {
		return review.Verdict{}, err
	}
	if len(needed) > review.MostNeeded {
		return review.Refused(about, fmt.Sprintf("needs more than %d approvals: make it smaller", review.MostNeeded)), nil
	}
	return review.Of(about, c, broken, needed), nil
}

// change is one of files, and what it does.
type change struct {
	before, after artifact.Files
	comparison    comparison.Comparison
}

// needed returns the approvals that a change of a branch needs.
func (b *base) needed(ctx context.Context, s *state, c change) ([]gitopsv1alpha1.NeededApproval, error) {
	edits, err := b.editsOf(ctx, s, c.before, c.after)
	if err != nil {
		return nil, err
	}
	return review.Needed(s.terms.approvals, c.comparison, s.fleet.Clusters(), edits), nil
}

// merged returns what the branch will be once a pull request is merged.
func (x examiner) merged(ctx context.Context, s *state, p forge.PullRequest, ours artifact.Files) (rehearsal.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, x.each)
	defer cancel()
	head, err := s.repository.Resolve(ctx, git.Ref{Name: p.Ref})
	if err != nil {
		return rehearsal.Revision{}, err
	}
	if head.Hash != p.Head {
		return rehearsal.Revision{}, errMoved
	}
	files, err := mergedFiles(ctx, s.repository, s.bases[p.Base].commit, ours, head)
	return rehearsal.Revision{Name: head.Revision().String(), Files: files}, err
}

// mergedFiles returns the files that there will be once a pull request is merged.
func mergedFiles(ctx context.Context, repository Repository, onto git.Commit, ours artifact.Files, head git.Commit) (artifact.Files, error) {
	from, err := repository.MergeBase(ctx, onto, head)
	if err != nil {
		return nil, err
	}
	if from == head.Hash {
		return ours, nil
	}
	theirs, err := repository.Files(ctx, head)
	if err != nil || from == onto.Hash {
		return theirs, err
	}
	base, err := repository.Files(ctx, git.Commit{Hash: from})
	if err != nil {
		return nil, err
	}
	return merge.Files(base, ours, theirs)
}

// made is what the fleet holds at the commit of a branch, found out once in a pass.
type made struct {
	mu    sync.Mutex
	begun bool
	at    *rehearsal.Base
	files artifact.Files
	err   error
}

// mostBase is for how long the commit of a branch is read: what is found out counts for all.
const mostBase = 5 * time.Minute

func (m *made) once(ctx context.Context, s *state, of git.Commit) (*rehearsal.Base, artifact.Files, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun {
		return m.at, m.files, m.err
	}
	m.begun = true
	// The one who comes first must not end it for others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostBase)
	defer cancel()
	if m.files, m.err = s.repository.Files(ctx, of); m.err != nil {
		m.err = fmt.Errorf("the branch %s: %s", of.Reference, foreign(m.err)) // no fault of the pull request
		return nil, nil, m.err
	}
	computing, leave, err := places.Compute(ctx)
	if err != nil {
		m.err = err
		return nil, nil, err
	}
	defer leave()
	m.at, m.err = s.fleet.At(computing, s.sourceOf(), rehearsal.Revision{Name: of.Revision().String(), Files: m.files})
	return m.at, m.files, m.err
}
