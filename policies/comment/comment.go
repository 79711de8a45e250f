package comment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// MaxBytes is how long a comment is at most; GitHub takes 65,536 characters, less what says whose it is.
const MaxBytes = 60_000

// Report is what is known of a commit.
type Report struct {
	// Context is the name of the commit's status.
	Context string
	// Commit is its hash.
	Commit string
	// Sum is of all that apply it.
	Sum rollup.Rollup
	// Shares are what each of them has come to.
	Shares []Share
	// Link is where to read more; empty for nowhere.
	Link string
}

// Share is what one that applies the commit has come to.
type Share struct {
	rollup.Share
	// Places are the clusters that it runs in, or is to.
	Places []rollup.Place
}

// Of returns the comment.
func Of(r Report) string {
	w := &writer{}
	w.WriteString(opening(r.Context, words[r.Sum.State], r.Commit, r.Sum.Description))
	w.clusters(clustersOf(r.Shares))
	w.shares(r.Shares)
	if r.Link != "" && len(r.Link) < footerBytes/2 {
		w.WriteString("\nMore: <" + strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", "\n", "").Replace(r.Link) + ">\n")
	}
	return w.String()
}

// Ended returns the comment on a commit of which nothing more is reported, and why.
func Ended(context, commit, reason string) string {
	return opening(context, "⏹ ended", commit, reason)
}

func opening(context, state, commit, description string) string {
	return fmt.Sprintf("### %s: %s at %s\n\n%s\n", foreign(context), state, foreign(commit[:min(len(commit), shortCommit)]), foreign(description))
}

// words say what a state means to a commit.
var words = map[string]string{rollup.StatePending: "🔄 rolls out", rollup.StateSuccess: "✅ runs everywhere", rollup.StateFailure: "❌ failed"}

const shortCommit = 8

// row is a cluster with the worst state that is to be reported of it.
type row struct {
	rollup.Place
	of string // who applies what is the worst there
}

// clustersOf returns the clusters of all that the commit changes, the worst first.
func clustersOf(shares []Share) []row {
	byName := map[string]row{}
	for _, s := range shares {
		if s.Unchanged || s.Suspended {
			continue
		}
		for _, p := range s.Places {
			next := row{p, s.Name}
			if before, known := byName[p.Cluster]; !known || byWeight(next, before) < 0 {
				byName[p.Cluster] = next
			}
		}
	}
	return slices.SortedFunc(maps.Values(byName), byWeight)
}

func byWeight(a, b row) int {
	return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(a.plain(), b.plain()), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.of, b.of))
}

// plain is 1 where nothing is to be reported of a cluster but that it runs all of it.
func (r row) plain() int {
	if r.State == rollup.Healthy && r.Reason == "" {
		return 1
	}
	return 0
}

// state says what has become of it there.
func (r row) state() string {
	if r.State == rollup.Healthy && r.Reason != "" {
		return "📦 keeps data"
	}
	return states[r.State]
}

// states say what has become of something in a cluster.
var states = map[rollup.State]string{
	rollup.Healthy: "✅ runs it", rollup.Progressing: "🔄 rolls out", rollup.Unknown: "❔ not heard of", rollup.Failed: "❌ failed",
}

// writer writes lines.
type writer struct{ strings.Builder }

// footerBytes is kept for what says how much was left out, and for the link.
const footerBytes = 6_000

// line writes one, unless the comment gets longer than most by it; it reports whether it did.
func (w *writer) line(text string, most int) bool {
	if w.Len()+len(text) >= most {
		return false
	}
	w.WriteString(text + "\n")
	return true
}

// clusters writes the table of clusters, in half of the room. Those that run all of it share a line.
func (w *writer) clusters(rows []row) {
	if len(rows) == 0 {
		return
	}
	w.WriteString("\n| cluster | | what |\n| --- | --- | --- |\n")
	healthy := slices.IndexFunc(rows, func(r row) bool { return r.plain() == 1 })
	if healthy < 0 {
		healthy = len(rows)
	}
	for i, r := range rows[:healthy] {
		if !w.line(fmt.Sprintf("| %s | %s | %s |", cell(r.Cluster), r.state(), cell(r.of+": "+r.Reason)), MaxBytes/2) {
			fmt.Fprintf(w, "| %d more clusters | | |\n", healthy-i)
			break
		}
	}
	if ready := rows[healthy:]; len(ready) > 0 {
		fmt.Fprintf(w, "| %s | %s | |\n", names(ready), states[rollup.Healthy])
	}
}

// mostNames are listed in one line.
const mostNames = 20

func names(rows []row) string {
	var out []string
	for _, r := range rows[:min(len(rows), mostNames)] {
		out = append(out, cell(excerpt.Runes(r.Cluster, mostName)))
	}
	text := strings.Join(out, " ")
	if more := len(rows) - len(out); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// shares writes the table of those that apply it. Of those that the commit leaves alone, only the ones that
// are not well have a line.
func (w *writer) shares(shares []Share) {
	listed := slices.DeleteFunc(slices.Clone(shares), func(s Share) bool {
		return s.Unchanged && s.State == rollup.StateSuccess && s.Waits == "" || s.Suspended
	})
	if len(listed) == 0 {
		return
	}
	slices.SortFunc(listed, func(a, b Share) int {
		return cmp.Or(cmp.Compare(weight[a.State], weight[b.State]), cmp.Compare(a.Name, b.Name))
	})
	w.WriteString("\n| Kustomization | | what |\n| --- | --- | --- |\n")
	for i, s := range listed {
		if !w.line(fmt.Sprintf("| %s | %s | %s |", cell(s.Name), s.outcome(), cell(s.Description)), MaxBytes-footerBytes) {
			fmt.Fprintf(w, "| %d more | | |\n", len(listed)-i)
			return
		}
	}
}

var weight = map[string]int{rollup.StateFailure: 0, rollup.StatePending: 1, "": 1, rollup.StateSuccess: 2}

func (s Share) outcome() string {
	switch {
	case s.Waits != "" && s.State != rollup.StateFailure:
		return "⏳ waits for " + cell(s.Waits) + ", which does not exist" + propagation.DidYouMean(cell(s.Meant))
	case s.Awaited:
		return "⏳ to be tried"
	case s.Unchanged:
		return "unchanged, not ready"
	case s.State == rollup.StateSuccess:
		return "✅ ready"
	case s.State == rollup.StateFailure:
		return "❌ failed"
	default:
		return "🔄 rolls out"
	}
}

// mostCell and mostName are in characters.
const (
	mostCell = 500
	mostName = 63
)

// cell is a foreign text in a cell of a table. A bar would end it, within code too; forges differ in what a
// backslash before it does, so that it is written as a broken one.
func cell(text string) string { return strings.ReplaceAll(foreign(text), "|", "¦") }

// foreign is a text of others. Within code nothing of it is Markdown, or mentions anybody; what would end the
// code becomes a quotation mark.
func foreign(text string) string {
	text = strings.ReplaceAll(excerpt.Runes(excerpt.Line(text), mostCell), "`", "'")
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "`" + text + "`"
}
