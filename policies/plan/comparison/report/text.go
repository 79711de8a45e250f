package report

import (
	"fmt"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/explain/columns"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// TextOptions are how much is written. The zero value is for people.
type TextOptions struct {
	// All names every cluster, and not the first ones of many.
	All bool
	// Width is the width of the screen, in columns; 0 where that is not known. No more than 100 are used, and lines of
	// manifests are never broken.
	Width int
}

// mostClusters are named in one place.
const mostClusters = 5

// Text returns the Comparison for people: a summary, risks, deletions, how templates move, and each difference.
func Text(c comparison.Comparison, opts TextOptions) string {
	w := &writer{opts: opts}
	w.line("%s", Summary(c))
	for _, note := range c.Notes {
		w.line("note: %s", note)
	}
	w.risks(c.Risks)
	w.objects("DELETED", c.Changes, comparison.Deleted)
	w.objects("LEFT BEHIND", c.Changes, comparison.Left)
	w.placements(c.Placements)
	w.differences(c.Changes)
	w.objects("SUSPENDED", c.Changes, comparison.Suspended)
	w.objects("RESUMED", c.Changes, comparison.Resumed)
	w.objects("WITH ANOTHER OWNER", c.Changes, comparison.Moved)
	w.restarts(c.Restarts)
	w.held(c.Held)
	return w.String()
}

// writer writes section by section.
type writer struct {
	strings.Builder
	opts TextOptions
}

// Width implements columns.Sized.
func (w *writer) Width() int {
	if w.opts.Width <= 0 {
		return columns.Width
	}
	return min(w.opts.Width, columns.Width)
}

func (w *writer) line(format string, args ...any) {
	_, _ = fmt.Fprintln(w, excerpt.Inline(fmt.Sprintf(format, args...)))
}

func (w *writer) section(title string) { _, _ = fmt.Fprintf(w, "\n%s\n", title) }

// clusters names the clusters of something.
func (w *writer) clusters(names []string) string {
	most := mostClusters
	if w.opts.All {
		most = 0
	}
	return listed(some(names, most))
}

// table writes rows whose texts come from elsewhere.
func (w *writer) table(rows [][]string) {
	t := columns.Table{Plain: true, Hangs: true}
	for _, cells := range rows {
		for i := range cells {
			cells[i] = excerpt.Inline(cells[i])
		}
		t.Add(cells...)
	}
	t.Write(w)
}

func (w *writer) risks(risks []comparison.Risk) {
	if len(risks) == 0 {
		return
	}
	w.section("RISKS")
	var rows [][]string
	for _, r := range risks {
		text := r.Message
		if len(r.Clusters) > 0 {
			text += ": " + w.clusters(r.Clusters)
		}
		rows = append(rows, []string{"  " + r.Reason, text})
	}
	w.table(rows)
}

// objects lists the objects to which an action happens.
func (w *writer) objects(title string, changes []comparison.Change, action comparison.Action) {
	var rows [][]string
	for i := range changes {
		if c := &changes[i]; c.Action == action {
			rows = append(rows, []string{"  " + c.Object.String(), "in " + w.clusters(c.Clusters) + tail(*c)})
		}
	}
	if len(rows) > 0 {
		w.section(title)
		w.table(rows)
	}
}

func (w *writer) placements(placements []comparison.Placement) {
	if len(placements) == 0 {
		return
	}
	w.section("PLACEMENT")
	for _, group := range alike(placements) {
		p, most := group[0], mostClusters
		if w.opts.All {
			most = 0
		}
		w.line("  %s: %s", listed(some(titles(group), most)), p.Why)
		var cells [][]string
		for _, r := range rows(p.Shifts) {
			cells = append(cells, []string{"    " + r.what, w.clusters(r.clusters)})
		}
		w.table(cells)
	}
}

// differences writes what is created and updated, each difference once.
func (w *writer) differences(changes []comparison.Change) {
	for _, of := range []struct {
		title  string
		action comparison.Action
	}{{"CREATED", comparison.Created}, {"UPDATED", comparison.Updated}} {
		some := false
		for i := range changes {
			c := &changes[i]
			if c.Action != of.action {
				continue
			}
			if !some {
				w.section(of.title)
				some = true
			}
			w.line("  %s%s: %s%s", c.Object, same(c.Clusters), w.clusters(c.Clusters), tail(*c))
			for _, line := range difference(*c) {
				_, _ = fmt.Fprintf(w, "    %s\n", line)
			}
		}
	}
}

func (w *writer) restarts(all []comparison.Restart) {
	if len(all) == 0 {
		return
	}
	w.section("PODS")
	var rows [][]string
	for _, r := range all {
		rows = append(rows, []string{"  " + r.Object.String(), podsText(r), fmt.Sprintf("in %s: %s", w.clusters(r.Clusters), r.Why)})
	}
	w.table(rows)
}

func (w *writer) held(all []comparison.Held) {
	if len(all) == 0 {
		return
	}
	w.section("STAYS AS IT IS")
	var rows [][]string
	for _, h := range all {
		rows = append(rows, []string{"  " + h.Object.String(), fmt.Sprintf("in %s: %s", w.clusters(h.Clusters), h.Why)})
	}
	w.table(rows)
}
