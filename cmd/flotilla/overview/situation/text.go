package situation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TextOptions change what Text shows.
type TextOptions struct {
	// Wide adds columns and shows all rows.
	Wide bool
	// Width is the number of characters in a line; 0 does not break lines, and cuts messages only where they are very long.
	Width int
	// Now is the present time, for ages.
	Now time.Time
}

// MostProblems is how many problems are shown without Wide.
const MostProblems = 10

// Limits of one screen.
const (
	mostRows     = 15
	mostProblems = MostProblems
	mostClusters = 5
	mostMessage  = 161 // including the mark, as below
	mostPiped    = 1000
	mostVersion  = 41
)

// Text writes the fleet for people.
func (f Fleet) Text(w io.Writer, opts TextOptions) error {
	t := text{opts: opts}
	t.summary(f)
	if f.Namespace != "" && f.nothing() && len(f.Unread) == 0 {
		t.line("There is no source, no Kustomization and no template in namespace %s.", f.Namespace)
	}
	for _, table := range []table{f.sources(opts), f.kustomizations(opts), f.clusters(opts)} {
		t.table(table)
	}
	t.problems(f.Problems)
	t.notes(f.Notes)
	for _, what := range f.Unread {
		t.line("You may not read %s: nothing is said of them.", what)
	}
	if f.Namespace == "" && slices.ContainsFunc(f.Unread, isNamespaced) {
		t.line("-n NAMESPACE shows one namespace.")
	}
	_, err := io.WriteString(w, t.out.String())
	return err
}

// isNamespaced reports whether a kind that may not be read may be readable in one namespace.
func isNamespaced(unread string) bool {
	return slices.Contains([]string{"GitRepositories", "Kustomizations", "PropagationPolicies", "ResourceBindings", "workloads"}, unread)
}

// table is one section. Rows that are not ready are shown in any case.
type table struct {
	title  string
	header []string
	rows   []row
}

type row struct {
	cells []string
	ready bool
}

type text struct {
	out  strings.Builder
	opts TextOptions
}

func (t *text) line(format string, args ...any) { fmt.Fprintf(&t.out, format+"\n", args...) }

// entry is an item of a list, which continues on the next line at the end of the screen.
func (t *text) entry(place int, content string) {
	begin := fmt.Sprintf("  %2d  ", place)
	width := 0
	if t.opts.Width > 0 {
		width = max(t.opts.Width-len(begin), 1)
	}
	for _, part := range screen.Wrap(content, width) {
		t.line("%s%s", begin, part)
		begin = strings.Repeat(" ", len(begin))
	}
}

// allReady is the verdict where nothing is wrong.
const allReady = "All is ready"

func (t *text) summary(f Fleet) {
	ready := func(states []State) Count {
		c := Count{Total: len(states)}
		for _, s := range states {
			switch s {
			case Ready:
				c.Ready++
			case Unknown:
				c.Unknown++
			}
		}
		return c
	}
	var clusters, sources, applies []State
	for i := range f.Clusters {
		clusters = append(clusters, f.Clusters[i].State)
	}
	for i := range f.Sources {
		sources = append(sources, f.Sources[i].State)
	}
	for i := range f.Kustomizations {
		applies = append(applies, f.Kustomizations[i].State)
	}
	verdict := allReady
	if f.Templates.Suspended > 0 || slices.Contains(sources, Suspended) || slices.Contains(applies, Suspended) {
		verdict = "All that is not suspended is ready"
	}
	if len(f.Unread) > 0 {
		verdict = "What you may read is ready"
	}
	if f.uncarried && verdict == allReady {
		verdict = "All that a policy carries is ready"
	}
	but := "but"
	if verdict == allReady && slices.Contains(f.Notes, empty) {
		verdict, but = "There is no cluster yet", "and"
	}
	if n := len(f.Notes); n > 0 {
		verdict += fmt.Sprintf(", %s %d %s worth a look", but, n, plural(n, "thing is", "things are"))
	}
	if n := len(f.Problems); n > 0 {
		verdict = fmt.Sprintf("%d %s not ready", n, plural(n, "thing is", "things are"))
	}
	templates := f.counted(f.Templates, "ResourceBindings")
	if f.Templates.Total > 0 && slices.Contains(f.Unread, Clusters) {
		templates += ", " + rollup.AsReported
	}
	t.line("%s: clusters %s, sources %s, Kustomizations %s, templates %s.",
		verdict, f.counted(ready(clusters), Clusters), f.counted(ready(sources), "GitRepositories"),
		f.counted(ready(applies), "Kustomizations"), templates)
}

// counted returns a count, or that the kind could not be read.
func (f Fleet) counted(c Count, what string) string {
	if c.Total == 0 && slices.Contains(f.Unread, what) {
		return "not read"
	}
	return c.text()
}

func (c Count) text() string {
	var besides []string
	if c.Unknown > 0 {
		besides = append(besides, fmt.Sprintf("%d unknown", c.Unknown))
	}
	if c.Suspended > 0 {
		besides = append(besides, fmt.Sprintf("%d suspended", c.Suspended))
	}
	if c.Leaving > 0 {
		besides = append(besides, fmt.Sprintf("%d leaving", c.Leaving))
	}
	if c.Finished > 0 {
		besides = append(besides, fmt.Sprintf("%d finished", c.Finished))
	}
	text := fmt.Sprintf("%d/%d", c.Ready, c.Total)
	if len(besides) > 0 {
		text += " (" + strings.Join(besides, ", ") + ")"
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func (t *text) table(s table) {
	if len(s.rows) == 0 {
		return
	}
	shown, left := s.rows, 0
	if !t.opts.Wide && len(shown) > mostRows {
		shown = slices.Clone(shown)
		slices.SortStableFunc(shown, func(a, b row) int { return order(a.ready) - order(b.ready) })
		shown, left = shown[:mostRows], len(shown)-mostRows
	}
	t.line("\n%s", s.title)
	w := tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  "+strings.Join(s.header, "\t"))
	for _, r := range shown {
		cells := make([]string, len(r.cells))
		for i, cell := range r.cells {
			cells[i] = cmp.Or(excerpt.Line(cell), "-") // most come from users and members
		}
		fmt.Fprintln(w, "  "+strings.Join(cells, "\t"))
	}
	_ = w.Flush() // it writes to memory
	if left > 0 {
		t.line("  and %d more: -o wide shows all", left)
	}
}

func order(ready bool) int {
	if ready {
		return 1
	}
	return 0
}

func (f Fleet) sources(opts TextOptions) table {
	s := table{title: "SOURCES", header: []string{"NAMESPACE", "NAME", "REVISION", "READY", "FETCHED", "URL"}}
	for i := range f.Sources {
		r := &f.Sources[i]
		fetched := "-"
		if r.Fetched != nil {
			fetched = ago(opts.Now, r.Fetched.Time)
		}
		s.rows = append(s.rows, row{[]string{r.Namespace, r.Name, excerpt.ShortRevision(r.Revision), r.State.word(), fetched, r.URL}, r.State == Ready})
	}
	return s
}

func (f Fleet) kustomizations(opts TextOptions) table {
	s := table{title: "KUSTOMIZATIONS", header: []string{"NAMESPACE", "NAME", "REVISION", "READY", "CLUSTERS", "OBJECTS", "SOURCE"}}
	if opts.Wide {
		s.header = append(s.header, "PATH", "MESSAGE")
	}
	for i := range f.Kustomizations {
		k := &f.Kustomizations[i]
		cells := []string{k.Namespace, k.Name, excerpt.ShortRevision(k.Revision), k.State.word(), wording.GoesTo(k.Outside, k.Clusters.Total, k.Clusters.text()), fmt.Sprint(k.Objects), k.Source}
		if opts.Wide {
			cells = append(cells, excerpt.Runes(k.Path, 100), k.Message) // all rows are as wide as the longest
		}
		s.rows = append(s.rows, row{cells, k.State == Ready})
	}
	return s
}

func (f Fleet) clusters(opts TextOptions) table {
	s := table{title: "CLUSTERS", header: []string{"NAME", "READY", "VERSION", "MODE", "NODES", "TEMPLATES", "AGENT"}}
	if opts.Wide {
		s.header = append(s.header, "CPU", "MEMORY", "PROVIDER", "REGION", "TAINTS", "MESSAGE")
	}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		cells := []string{c.Name, c.word(), excerpt.Runes(excerpt.Line(c.Version), mostVersion), c.Mode, "-", c.Templates.text(), c.agent(opts.Now)}
		if c.Nodes != nil && c.State == Ready { // otherwise the number is outdated
			cells[4] = c.Nodes.text()
		}
		if opts.Wide {
			cells = append(cells, c.CPU, c.Memory, c.Provider, c.Region, strings.Join(c.Taints, ","), c.Message)
		}
		s.rows = append(s.rows, row{cells, c.State == Ready})
	}
	return s
}

// silent reports whether the agent does not report, rather than reports a fault.
func (c *Cluster) silent() bool {
	return c.Reason == clusterv1alpha1.ClusterStatusUnknownReason || c.Reason == clusterv1alpha1.ClusterStatusNeverUpdatedReason
}

func (c *Cluster) word() string {
	word := c.State.word()
	if c.silent() {
		word = Progressing.word() // it is not known
	}
	switch {
	case c.Drained && (c.emptying || c.Templates.Total+c.Templates.Leaving > c.Templates.Finished): // some are moving, and some may fit nowhere else
		word += ",draining"
	case c.Drained:
		word += ",drained"
	case c.Cordoned:
		word += ",cordoned"
	}
	if len(c.Taints) > 0 {
		word += ",tainted"
	}
	if c.Leaving {
		word += ",leaving"
	}
	return word
}

// agent returns when the agent last reported; "-" for a cluster without one.
func (c *Cluster) agent(now time.Time) string {
	switch {
	case c.Mode != "Pull":
		return "-"
	case c.Heard == nil && c.State == Ready:
		return "heard just now" // it reports a ready cluster before it first renews its Lease
	case c.Heard == nil:
		return "never heard"
	case c.silent():
		return "silent for " + strings.TrimSuffix(ago(now, c.Heard.Time), " ago")
	case c.State == Ready && now.Sub(c.Heard.Time) < time.Second:
		return "heard just now"
	default:
		return "heard " + ago(now, c.Heard.Time)
	}
}

func (t *text) problems(problems []Problem) {
	if len(problems) == 0 {
		return
	}
	t.line("\nNOT READY")
	most := mostProblems
	if t.opts.Wide {
		most = len(problems)
	}
	for i, p := range problems[:min(most, len(problems))] {
		where := ""
		if len(p.Clusters) > 0 {
			where = " in " + t.names(p.Clusters)
		}
		t.entry(i+1, p.Object()+where+": "+t.clip(excerpt.Line(p.text())))
		t.line("      next: %s", excerpt.Line(p.Next))
	}
	if left := len(problems) - most; left > 0 {
		t.line("  and %d more: -o wide shows all", left)
	}
}

// text returns the message.
func (p Problem) text() string {
	if p.Symptom == "" {
		return p.Message
	}
	return p.Message + ": " + p.Symptom
}

func (t *text) notes(notes []Note) {
	if len(notes) == 0 {
		return
	}
	t.line("\nWORTH A LOOK")
	most := mostProblems
	if t.opts.Wide {
		most = len(notes)
	}
	for i, n := range notes[:min(most, len(notes))] {
		t.entry(i+1, strings.TrimPrefix(n.object()+": "+t.clip(excerpt.Line(n.Message)), ": "))
		t.line("      next: %s", excerpt.Line(n.Next))
	}
	if left := len(notes) - most; left > 0 {
		t.line("  and %d more: -o wide shows all", left)
	}
}

func (t *text) names(clusters []string) string {
	if t.opts.Wide || len(clusters) <= mostClusters {
		return strings.Join(clusters, ", ")
	}
	return fmt.Sprintf("%s and %d more clusters", strings.Join(clusters[:mostClusters], ", "), len(clusters)-mostClusters)
}

// clip cuts a message to what one screen has room for; a pipe has no width, and only what is beyond reading is cut there.
func (t *text) clip(s string) string {
	switch {
	case t.opts.Wide:
		return s
	case t.opts.Width == 0:
		return excerpt.Runes(s, mostPiped)
	default:
		return excerpt.Runes(s, mostMessage)
	}
}
