package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// The demo ends when the commit is reported as successful: not while the summary of the source is behind.
func TestReportStage(t *testing.T) {
	report := func(of *gitopsv1alpha1.LocalReference, commit string, state gitopsv1alpha1.CommitState) gitopsv1alpha1.CommitStatus {
		out := gitopsv1alpha1.CommitStatus{Spec: gitopsv1alpha1.CommitStatusSpec{KustomizationRef: of}}
		if commit != "" {
			out.Status.Posted = &gitopsv1alpha1.PostedStatus{Commit: commit, State: state, Description: "3/3 clusters ready"}
		}
		return out
	}
	web := &gitopsv1alpha1.LocalReference{Name: "web"}
	const success, pending, failure = gitopsv1alpha1.CommitSuccess, gitopsv1alpha1.CommitPending, gitopsv1alpha1.CommitFailure
	cases := map[string]struct {
		reports []gitopsv1alpha1.CommitStatus
		want    Stage
	}{
		"nothing is posted":        {nil, Stage{}},
		"both say so":              {[]gitopsv1alpha1.CommitStatus{report(nil, "1", success), report(web, "1", success)}, Stage{State: Done, Text: "success: 3/3 clusters ready"}},
		"the sum is behind":        {[]gitopsv1alpha1.CommitStatus{report(nil, "1", pending), report(web, "1", success)}, Stage{Text: "success: 3/3 clusters ready"}},
		"the sum is not posted":    {[]gitopsv1alpha1.CommitStatus{report(nil, "", ""), report(web, "1", success)}, Stage{Text: "success: 3/3 clusters ready"}},
		"the commit is an earlier": {[]gitopsv1alpha1.CommitStatus{report(nil, "0", success), report(web, "0", success)}, Stage{}},
		"it failed":                {[]gitopsv1alpha1.CommitStatus{report(nil, "1", failure), report(web, "1", failure)}, Stage{State: Failed, Text: "failure: 3/3 clusters ready"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reportStage(tc.reports, "1")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
