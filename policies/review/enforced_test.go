package review_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/review"
)

// TestEnforced is about how far a branch has its approvals.
func TestEnforced(t *testing.T) {
	hash := func(digit string) string { return strings.Repeat(digit, 40) }
	needs := func(by ...string) []gitopsv1alpha1.NeededApproval {
		return []gitopsv1alpha1.NeededApproval{{Name: "europe", Users: []string{"ann"}, Count: 1, By: by}}
	}
	nothing := review.Step{Commit: hash("1")}
	given := review.Step{Commit: hash("2"), PullRequest: 7, Needed: needs("ann")}
	merged := review.Step{Commit: hash("3"), PullRequest: 8, Needed: needs()}
	pushed := review.Step{Commit: hash("4"), Needed: needs()}
	held := func(approved string, by review.Step, message string) gitopsv1alpha1.EnforcedApprovals {
		return gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: approved, Held: &gitopsv1alpha1.HeldCommit{Commit: hash("9"), Lacking: by.Commit, PullRequest: by.PullRequest, Message: message, Approvals: by.Needed}}
	}
	for name, tc := range map[string]struct {
		steps []review.Step
		want  gitopsv1alpha1.EnforcedApprovals
	}{
		"none is needed":                     {[]review.Step{nothing}, gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: hash("1")}},
		"each was given":                     {[]review.Step{nothing, given}, gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: hash("2")}},
		"one is missing":                     {[]review.Step{given, merged}, held(hash("2"), merged, "pull request 8 awaits europe: ann")},
		"one is missing before one that has": {[]review.Step{merged, given}, held(hash("0"), merged, "pull request 8 awaits europe: ann")},
		"it was pushed":                      {[]review.Step{pushed}, held(hash("0"), pushed, "commit 4444444444 was pushed, and awaits europe: ann")},
		"nothing is known":                   {nil, gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: hash("0")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, review.Enforced(hash("0"), hash("9"), tc.steps)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
