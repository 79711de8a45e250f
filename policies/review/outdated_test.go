package review_test

import (
	"testing"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/review"
)

// TestOutdated: a review is of a head, a commit of the branch, a fleet and rules.
func TestOutdated(t *testing.T) {
	now := gitopsv1alpha1.ReviewSubject{Head: "h", Base: "b", Fleet: "f", Rules: "r"}
	for name, tc := range map[string]struct {
		was       *gitopsv1alpha1.ReviewSubject
		want      string
		fleetOnly bool
	}{
		"nobody has looked":     {want: "not looked at yet"},
		"another head":          {was: &gitopsv1alpha1.ReviewSubject{Head: "x", Base: "b", Fleet: "f", Rules: "r"}, want: "not looked at yet"},
		"the branch went on":    {was: &gitopsv1alpha1.ReviewSubject{Head: "h", Base: "x", Fleet: "f", Rules: "r"}, want: "main has changed: to be looked at again"},
		"other rules":           {was: &gitopsv1alpha1.ReviewSubject{Head: "h", Base: "b", Fleet: "f", Rules: "x"}, want: "the rules have changed: to be looked at again"},
		"another fleet":         {was: &gitopsv1alpha1.ReviewSubject{Head: "h", Base: "b", Fleet: "x", Rules: "r"}, want: "the fleet has changed: to be looked at again", fleetOnly: true},
		"another fleet, and so": {was: &gitopsv1alpha1.ReviewSubject{Head: "h", Base: "x", Fleet: "x", Rules: "r"}, want: "main has changed: to be looked at again"},
		"the same":              {was: &now, want: "could not be told before: tried again"},
	} {
		if got, only := review.Outdated("main", tc.was, now), review.OfAnotherFleet(tc.was, now); got != tc.want || only != tc.fleetOnly {
			t.Errorf("%s: %q, for the fleet alone %t; want %q, %t", name, got, only, tc.want, tc.fleetOnly)
		}
	}
}

// TestWorst: several pull requests of one head have one status.
func TestWorst(t *testing.T) {
	of := func(phases ...gitopsv1alpha1.ReviewPhase) (out []*gitopsv1alpha1.ReviewedPullRequest) {
		for i, phase := range phases {
			out = append(out, &gitopsv1alpha1.ReviewedPullRequest{Number: int64(i + 1), Phase: phase})
		}
		return out
	}
	for name, tc := range map[string]struct {
		all   []*gitopsv1alpha1.ReviewedPullRequest
		worst int64
		state gitopsv1alpha1.CommitState
	}{
		"all pass":                   {of(gitopsv1alpha1.ReviewPassed, gitopsv1alpha1.ReviewPassed), 1, gitopsv1alpha1.CommitSuccess},
		"one is not reviewed":        {of(gitopsv1alpha1.ReviewPassed, gitopsv1alpha1.ReviewNot), 2, gitopsv1alpha1.CommitPending},
		"one is not looked at":       {of(gitopsv1alpha1.ReviewNot, gitopsv1alpha1.ReviewPending), 2, gitopsv1alpha1.CommitPending},
		"one fails, others not":      {of(gitopsv1alpha1.ReviewPending, gitopsv1alpha1.ReviewPassed, gitopsv1alpha1.ReviewFailed), 3, gitopsv1alpha1.CommitFailure},
		"one awaits an approval":     {of(gitopsv1alpha1.ReviewPassed, gitopsv1alpha1.ReviewAwaiting), 2, gitopsv1alpha1.CommitPending},
		"a phase of a later version": {of("Later"), 1, gitopsv1alpha1.CommitPending},
	} {
		if got, state := review.Worst(tc.all); got.Number != tc.worst || state != tc.state {
			t.Errorf("%s: %d %s, want %d %s", name, got.Number, state, tc.worst, tc.state)
		}
	}
}
