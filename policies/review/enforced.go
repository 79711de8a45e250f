package review

import (
	"fmt"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Step is one in which a branch came to be what it is.
type Step struct {
	// Commit is the hash that it led to.
	Commit string
	// PullRequest is the number of the one that was merged, as its head was approved of; zero for what was pushed.
	PullRequest int64
	// Needed are the approvals that it needs, with who gave them.
	Needed []gitopsv1alpha1.NeededApproval
}

// Enforced returns how far a source has its approvals, from the commit up to which it had them before to the one that it has now. Steps
// are those in between, the first one first.
func Enforced(before, now string, steps []Step) gitopsv1alpha1.EnforcedApprovals {
	out := gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: before}
	for _, step := range steps {
		missing := Missing(step.Needed)
		if len(missing) > 0 {
			out.Held = &gitopsv1alpha1.HeldCommit{Commit: now, Lacking: step.Commit, PullRequest: step.PullRequest, Message: step.awaits(missing), Approvals: step.Needed}
			return out
		}
		out.ApprovedCommit = step.Commit
	}
	return out
}

// NotJudged returns the same where it cannot be found out: what had its approvals stays as it is.
func NotJudged(before, now, why string) gitopsv1alpha1.EnforcedApprovals {
	return gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: before, Held: &gitopsv1alpha1.HeldCommit{Commit: now, Message: oneLine("it is not known yet what it needs: " + why)}}
}

func (s Step) awaits(missing []gitopsv1alpha1.NeededApproval) string {
	what := fmt.Sprintf("commit %s was pushed, and ", short(s.Commit))
	if s.PullRequest > 0 {
		what = fmt.Sprintf("pull request %d ", s.PullRequest)
	}
	return oneLine(what + awaited(missing))
}
