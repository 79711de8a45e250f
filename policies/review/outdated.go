package review

import (
	"slices"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Outdated says why a review is not of what there is now. base is the branch that the pull request is to be merged into, and was nil
// for one that nobody has looked at.
func Outdated(base string, was *gitopsv1alpha1.ReviewSubject, now gitopsv1alpha1.ReviewSubject) string {
	switch {
	case was == nil || was.Head != now.Head:
		return "not looked at yet"
	case was.Base != now.Base:
		return base + " has changed: to be looked at again"
	case was.Rules != now.Rules:
		return "the rules have changed: to be looked at again"
	case was.Fleet != now.Fleet:
		return "the fleet has changed: to be looked at again"
	default:
		return "could not be told before: tried again"
	}
}

// OfAnotherFleet reports whether a review is outdated for the fleet alone, which may go on changing.
func OfAnotherFleet(was *gitopsv1alpha1.ReviewSubject, now gitopsv1alpha1.ReviewSubject) bool {
	if was == nil || was.Fleet == now.Fleet {
		return false
	}
	now.Fleet = was.Fleet
	return *was == now
}

// worst are phases, the worst first, and what their pull requests are told.
var worst = []struct {
	phase gitopsv1alpha1.ReviewPhase
	state gitopsv1alpha1.CommitState
}{
	{gitopsv1alpha1.ReviewFailed, gitopsv1alpha1.CommitFailure}, {gitopsv1alpha1.ReviewPending, gitopsv1alpha1.CommitPending},
	{gitopsv1alpha1.ReviewNot, gitopsv1alpha1.CommitPending}, {gitopsv1alpha1.ReviewAwaiting, gitopsv1alpha1.CommitPending}, {gitopsv1alpha1.ReviewPassed, gitopsv1alpha1.CommitSuccess},
}

// Worst returns the worst of pull requests with one head, which has one status, and that. There is at least one.
func Worst(all []*gitopsv1alpha1.ReviewedPullRequest) (*gitopsv1alpha1.ReviewedPullRequest, gitopsv1alpha1.CommitState) {
	for _, w := range worst {
		if i := slices.IndexFunc(all, func(e *gitopsv1alpha1.ReviewedPullRequest) bool { return e.Phase == w.phase }); i >= 0 {
			return all[i], w.state
		}
	}
	return all[0], gitopsv1alpha1.CommitPending
}
