package review

import (
	"context"
	"fmt"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/reconciler/providers"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// tell gives the head of a pull request a status, unless others have the same head: what is told of those is told at the end. It
// reports whether the forge knows, or will.
func (s *state) tell(ctx context.Context, entry *gitopsv1alpha1.ReviewedPullRequest, state gitopsv1alpha1.CommitState, description string) bool {
	return len(s.of(entry.Head)) > 1 || s.post(ctx, entry, state, description)
}

// of returns the pull requests with a head.
func (s *state) of(head string) []*gitopsv1alpha1.ReviewedPullRequest {
	var out []*gitopsv1alpha1.ReviewedPullRequest
	for i := range s.object.Status.PullRequests {
		if entry := &s.object.Status.PullRequests[i]; entry.Head == head {
			out = append(out, entry)
		}
	}
	return out
}

// post gives the head of a pull request a status, unless the forge has it. It reports whether the forge knows.
func (s *state) post(ctx context.Context, entry *gitopsv1alpha1.ReviewedPullRequest, state gitopsv1alpha1.CommitState, description string) bool {
	want := gitopsv1alpha1.PostedReview{Commit: entry.Head, State: state, Description: description}
	if entry.Posted != nil && *entry.Posted == want {
		return true
	}
	if s.faults.limited() {
		return false // it would be refused as well, and keep the forge from taking others for longer
	}
	err := s.forge.Post(ctx, forge.Status{Commit: want.Commit, Context: s.object.Spec.Context, State: providers.StateOf(state), Description: description})
	if err != nil {
		s.faults.add(classify(fmt.Errorf("pull request %d: %w", entry.Number, err), s.interval()))
		return false
	}
	entry.Posted = &want
	return true
}

// toldOf returns the line that a pull request is told.
func toldOf(entry *gitopsv1alpha1.ReviewedPullRequest) string {
	if missing := review.Missing(entry.Approvals); entry.Phase == gitopsv1alpha1.ReviewAwaiting && len(missing) > 0 {
		return review.Awaited(missing, entry.Message)
	}
	return entry.Message
}

// together gives heads that several pull requests have the status of the worst of them: a commit has one. What one of them alone has
// been told before is told as its own once the others are closed.
func (r *Reconciler) together(ctx context.Context, s *state) (loop.Next, error) {
	for i := range s.object.Status.PullRequests {
		entry := &s.object.Status.PullRequests[i]
		all := s.of(entry.Head)
		if all[0] != entry {
			continue
		}
		worst, state := review.Worst(all)
		text := toldOf(worst)
		if len(all) > 1 {
			text = fmt.Sprintf("pull request %d: %s", worst.Number, text)
		} else if worst.Phase == gitopsv1alpha1.ReviewPending {
			continue // it was told before, where there was anything to take back
		}
		if s.post(ctx, entry, state, text) {
			for _, other := range all {
				other.Posted = entry.Posted
			}
		}
	}
	return loop.Next{}, nil
}
