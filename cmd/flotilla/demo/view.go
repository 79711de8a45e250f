package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is the state of a stage, or of one object in one cluster.
type State int

const (
	// Waiting means not begun, or in progress.
	Waiting State = iota
	// Done means complete and healthy.
	Done
	// Failed means that somebody has to look into it.
	Failed
)

// glyph returns the character that shows a state.
func (s State) glyph() string {
	switch s {
	case Done:
		return "✔"
	case Failed:
		return "✗"
	default:
		return "◎"
	}
}

// Stage is one step on the way of a change.
type Stage struct {
	State State
	Text  string
}

// Cell is the state of one object in one cluster. Text is empty if the object does not run
// there.
type Cell struct {
	State State
	Text  string
}

// Row is one object and its state in each cluster.
type Row struct {
	Object string
	Cells  map[string]Cell
}

// View is everything that the table shows, at one moment.
type View struct {
	Fetch, Apply, Place, Report Stage
	// Clusters are the columns, in order.
	Clusters []string
	Rows     []Row
}

// Finished reports whether nothing is left to wait for.
func (v View) Finished() bool {
	return v.Fetch.State == Done && v.Apply.State == Done && v.Place.State == Done && v.run().State == Done && v.Report.State == Done
}

// Failure returns the first stage that failed.
func (v View) Failure() (string, bool) {
	for _, stage := range []Stage{v.Fetch, v.Apply, v.Place, v.Report} {
		if stage.State == Failed {
			return stage.Text, true
		}
	}
	return "", false
}

// run returns the summary of the table.
func (v View) run() Stage {
	total, ready := 0, 0
	for _, row := range v.Rows {
		for _, cell := range row.Cells {
			total++
			if cell.State == Done {
				ready++
			}
		}
	}
	stage := Stage{Text: fmt.Sprintf("%d of %d ready", ready, total)}
	if total > 0 && ready == total {
		stage.State = Done
	}
	return stage
}

// Table returns the view as lines for a terminal.
func (v View) Table(elapsed time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  since the demo was started                              %4.0fs\n\n", elapsed.Seconds())
	writeStage(&b, "1 fetch", v.Fetch)
	writeStage(&b, "2 apply", v.Apply)
	writeStage(&b, "3 place", v.Place)
	writeStage(&b, "4 run", v.run())
	v.writeRows(&b)
	writeStage(&b, "5 report", v.Report)
	return b.String()
}

func writeStage(b *strings.Builder, name string, stage Stage) {
	fmt.Fprintf(b, "  %s %-9s %s\n", stage.State.glyph(), name, stage.Text)
}

func (v View) writeRows(b *strings.Builder) {
	if len(v.Rows) == 0 {
		return
	}
	wide := 0
	for _, row := range v.Rows {
		wide = max(wide, len(row.Object))
	}
	fmt.Fprintf(b, "      %-*s", wide, "")
	for _, cluster := range v.Clusters {
		fmt.Fprintf(b, "  %-9s", cluster)
	}
	b.WriteString("\n")
	for _, row := range v.Rows {
		fmt.Fprintf(b, "      %-*s", wide, row.Object)
		for _, cluster := range v.Clusters {
			cell, runs := row.Cells[cluster]
			text := "–"
			if runs {
				text = strings.TrimSpace(cell.State.glyph() + " " + cell.Text)
			}
			fmt.Fprintf(b, "  %-9s", text)
		}
		b.WriteString("\n")
	}
}

// Lines returns, for output that is not a terminal, one line for each stage that differs from
// the view before.
func (v View) Lines(before View, elapsed time.Duration) []string {
	type named struct {
		name     string
		now, was Stage
	}
	var out []string
	for _, s := range []named{
		{"fetch", v.Fetch, before.Fetch},
		{"apply", v.Apply, before.Apply},
		{"place", v.Place, before.Place},
		{"run", v.run(), before.run()},
		{"report", v.Report, before.Report},
	} {
		if s.now != s.was && s.now.Text != "" {
			out = append(out, fmt.Sprintf("[%3.0fs] %s %-7s %s", elapsed.Seconds(), s.now.State.glyph(), s.name, s.now.Text))
		}
	}
	return out
}

// sortRows sorts the rows by object, so that their order does not change between views.
func sortRows(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Object, b.Object) })
}
