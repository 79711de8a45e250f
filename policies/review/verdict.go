package review

import (
	"fmt"
	"strings"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
)

// About is what a review is about.
type About struct {
	// Head and Onto are hashes of the commits that are merged, and Branch the name of the branch.
	Head, Onto, Branch string
	// Fleet is a digest.
	Fleet string
}

// Verdict is what a pull request is told.
type Verdict struct {
	// State is success or failure, and Description one line about it.
	State       gitopsv1alpha1.CommitState
	Description string
	// Comment is Markdown.
	Comment string
	// Summary is nil where it is not known what the merge would do.
	Summary *gitopsv1alpha1.ReviewSummary
	Broken  []string
	// Needed are the approvals without which it is no success.
	Needed []gitopsv1alpha1.NeededApproval
}

const (
	title = "### What this merge does to each cluster\n\n"
	// mostAbout is how many bytes there are for the line about what is reviewed.
	mostAbout = 2000
	// mostPaths is how many files a comment names.
	mostPaths = 20
)

// Of returns the verdict on a change, the rules that it breaks, and the approvals that it needs.
func Of(about About, c comparison.Comparison, broken []Broken, needed []gitopsv1alpha1.NeededApproval) Verdict {
	out := Verdict{State: gitopsv1alpha1.CommitSuccess, Description: report.Summary(c), Summary: summary(c), Needed: needed}
	var text strings.Builder
	text.WriteString(title)
	for _, b := range broken {
		out.Broken = append(out.Broken, b.Rule)
		fmt.Fprintf(&text, "- ❌ **%s**", b.Rule)
		if b.Why != "" {
			text.WriteString(": " + report.Words(b.Why))
		}
		text.WriteString("\n")
	}
	for _, need := range needed {
		fmt.Fprintf(&text, "- ✋ **%s** has to be approved by %s\n", need.Name, report.Words(oneLine(whom(need))))
	}
	if len(broken)+len(needed) > 0 {
		text.WriteString("\n")
	}
	if len(broken) > 0 {
		out.State, out.Description = gitopsv1alpha1.CommitFailure, "breaks the rule "+broken[0].Rule
		if more := len(broken) - 1; more > 0 {
			out.Description = fmt.Sprintf("breaks the rule %s, and %d more", broken[0].Rule, more)
		}
		out.Description += ": " + report.Summary(c)
	}
	if risk, refused := c.Refused(); refused {
		out.State, out.Description = gitopsv1alpha1.CommitFailure, risk.Message
	}
	text.WriteString(report.Markdown(c, report.MarkdownOptions{Most: report.MaxBytes - mostAbout - text.Len(), Whole: "flotilla plan"}))
	out.Description = oneLine(out.Description)
	out.Comment = text.String() + about.line()
	return out
}

// mostDescription is the longest description of a status that all forges take, in characters.
const mostDescription = 140

// oneLine returns a text as the description of a status. A terminal shows it, too.
func oneLine(text string) string {
	return excerpt.Runes(excerpt.Visible(excerpt.Line(text)), mostDescription)
}

// line says what a comment is about.
func (a About) line() string {
	return fmt.Sprintf("\n---\n%s merged into %s at %s; fleet %s\n", report.Words(short(a.Head)), report.Words(a.Branch), report.Words(short(a.Onto)), report.Words(a.Fleet))
}

// short is how much of a hash names a commit to people.
func short(hash string) string { return hash[:min(len(hash), 10)] }

// Conflict returns the verdict on a pull request that cannot be merged, and the files that keep it from that.
func Conflict(about About, paths []string) Verdict {
	var text strings.Builder
	text.WriteString(title + "It cannot be merged: " + report.Words(about.Branch) + " has changed the same lines.\n\n")
	for _, path := range paths[:min(len(paths), mostPaths)] {
		text.WriteString("- " + report.Words(path) + "\n")
	}
	if more := len(paths) - mostPaths; more > 0 {
		fmt.Fprintf(&text, "- and %d more\n", more)
	}
	return Verdict{State: gitopsv1alpha1.CommitFailure, Description: oneLine("conflicts with " + about.Branch + ": merge or rebase"), Comment: text.String() + about.line()}
}

// Refused returns the verdict on a pull request about which nothing can be found out before somebody changes it.
func Refused(about About, why string) Verdict {
	return Verdict{
		State: gitopsv1alpha1.CommitFailure, Description: oneLine(why),
		Comment: title + report.Words(why) + "\n" + about.line(),
	}
}

func summary(c comparison.Comparison) *gitopsv1alpha1.ReviewSummary {
	s := c.Summary
	return &gitopsv1alpha1.ReviewSummary{
		Deleted: int32(s.Deleted), Created: int32(s.Created), Updated: int32(s.Updated), Clusters: int32(s.Clusters), Restarts: s.Restarts, Risks: int32(len(c.Risks)), //nolint:gosec // counts objects
	}
}
