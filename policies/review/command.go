package review

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
	"github.com/flotilla-io/flotilla/policies/whatif"
)

// Command is what a comment asks for. All of it is foreign text, but Kind, Namespace and Name have the form of such names.
type Command struct {
	// Line is what was written.
	Line string
	// Verb is empty for a command that there is not; Wrong then says so.
	Verb  gitopsv1alpha1.ReviewCommand
	Wrong string
	// Kind, Namespace and Name are of what is explained. Namespace is empty where none was given.
	Kind, Namespace, Name string
	// Events are what is supposed to happen to clusters.
	Events []whatif.Event
}

const (
	prefix = "/flotilla"
	// mostCommand is how long a command is, in bytes.
	mostCommand = 1000
	usage       = "use /flotilla plan, /flotilla what-if CLUSTER:down, or /flotilla explain KIND/NAME -n NAMESPACE"
)

var (
	kindForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9.]{0,252}$`)
	nameForm = regexp.MustCompile(`^[a-z0-9A-Z]([-a-z0-9A-Z.:_]{0,251}[a-z0-9A-Z])?$`)
)

// CommandOf returns the command that a comment is: its first line. Most comments are none.
func CommandOf(comment string) (Command, bool) {
	line, _, _ := strings.Cut(strings.TrimSpace(comment), "\n")
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != prefix {
		return Command{}, false
	}
	c := Command{Line: strings.Join(words, " ")}
	switch {
	case len(line) > mostCommand:
		c.Line, c.Wrong = excerpt.Runes(c.Line, mostDescription), "it is too long"
	case len(words) == 1:
		c.Wrong = usage
	case words[1] == string(gitopsv1alpha1.CommandPlan) && len(words) == 2:
		c.Verb = gitopsv1alpha1.CommandPlan
	case words[1] == string(gitopsv1alpha1.CommandExplain):
		c.object(words[2:])
	case words[1] == string(gitopsv1alpha1.CommandWhatIf) && len(words) > 2:
		c.events(words[2:])
	default:
		c.Wrong = usage
	}
	return c, true
}

// events reads what is supposed. There are no files of clusters that join: what is not merged makes no cluster.
func (c *Command) events(words []string) {
	events, err := whatif.Parse(words)
	if err == nil && slices.ContainsFunc(events, func(e whatif.Event) bool { return e.File() != "" }) {
		err = errors.New("add: is for files, which flotilla plan --what-if reads")
	}
	if err != nil {
		c.Wrong = excerpt.Message(err.Error(), mostDescription)
		return
	}
	c.Verb, c.Events = gitopsv1alpha1.CommandWhatIf, events
}

// object reads what is to be explained.
func (c *Command) object(words []string) {
	if i := slices.IndexFunc(words, func(w string) bool { return w == "-n" || w == "--namespace" }); i >= 0 && i+1 < len(words) {
		c.Namespace = words[i+1]
		words = slices.Delete(slices.Clone(words), i, i+2)
	}
	if len(words) == 1 {
		words = strings.Split(words[0], "/")
	}
	if len(words) != 2 || !kindForm.MatchString(words[0]) || !nameForm.MatchString(words[1]) || c.Namespace != "" && !nameForm.MatchString(c.Namespace) {
		c.Namespace, c.Wrong = "", "use /flotilla explain KIND/NAME -n NAMESPACE, such as /flotilla explain deployment/web -n shop"
		return
	}
	c.Verb, c.Kind, c.Name = gitopsv1alpha1.CommandExplain, words[0], words[1]
}

// Among returns a command, as a wrong one if it is not among those that are allowed.
func (c Command) Among(allowed []gitopsv1alpha1.ReviewCommand) Command {
	if c.Verb != "" && !slices.Contains(allowed, c.Verb) {
		return Command{Line: c.Line, Wrong: "this command is not allowed here: spec.commands of the PullRequestReview has those that are"}
	}
	return c
}

// Foresees returns the comment that answers what would be.
func (c Command) Foresees(would comparison.Comparison) string {
	return c.quoted() + report.Markdown(would, report.MarkdownOptions{Most: report.MaxBytes - mostAbout - len(c.quoted())})
}

func (c Command) quoted() string { return "> " + report.Words(c.Line) + "\n\n" }

// Answer returns the comment that answers a command: text in a block of code, or a line of words.
func (c Command) Answer(text string) string {
	quoted := c.quoted()
	if lines := strings.Split(strings.TrimRight(text, "\n"), "\n"); len(lines) > 1 {
		return quoted + report.Block(lines) + "\n"
	}
	return quoted + report.Words(text) + "\n"
}
