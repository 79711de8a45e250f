package draining

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/drain"
)

// Report is the output for programs.
type Report struct {
	Cluster string `json:"cluster"`
	// DryRun is true if no drain was requested.
	DryRun bool        `json:"dryRun"`
	Rows   []drain.Row `json:"rows"`
	// Tally counts the rows by how they stand.
	Totals drain.Totals `json:"tally"`
	// Notes list what a dry run could not find out.
	Notes []string `json:"notes,omitempty"`
}

// JSON writes the report.
func (r Report) JSON(out io.Writer) error {
	if r.Rows == nil {
		r.Rows = []drain.Row{}
	}
	r.Totals = drain.Count(r.Rows)
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Table writes the report for people.
func (r Report) Table(out io.Writer) error {
	if len(r.Rows) == 0 {
		_, err := fmt.Fprintf(out, "Nothing runs in %s.\n", r.Cluster)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAMESPACE\tKIND\tNAME\tFROM\tTO")
	for i := range r.Rows {
		row := &r.Rows[i]
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", dash(row.Namespace), row.Kind, row.Name, drain.Place(r.Cluster, row.Replicas), to(row))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintf(out, "note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// to is where a template goes, or why it does not, what it waits for where a cluster is not ready or lacks something, and what becomes of its data.
func to(row *drain.Row) string {
	after := ""
	if len(row.Unready) > 0 {
		after = ": " + row.Why
	}
	if row.Lacks != "" {
		after += "; " + row.Lacks + ": the old copy stays until there is enough"
	}
	after += data(row)
	switch {
	case row.State == drain.Refused && len(row.To) > 0:
		return row.Places() + ": " + row.Says()
	case row.State == drain.Stays, row.State == drain.Refused, row.State == drain.Finished:
		return "- stays: " + row.Says()
	case row.State == drain.Waits:
		return "- waits: " + row.Why + after
	case row.RunsOn:
		return "- leaves, " + row.Goes() + after
	case len(row.To) == 0:
		return "- leaves: " + row.Why + data(row)
	}
	return row.Places() + after
}

// data is what becomes of a row's data, behind something.
func data(row *drain.Row) string {
	if row.Data == "" {
		return ""
	}
	return "; " + row.Data
}

// shown is how many templates an error names.
const shown = 3

// Verdict returns nil if nothing has to stay in the cluster but what has finished there, and else an error with what
// stays and what to do.
func (r Report) Verdict() error {
	rest := slices.DeleteFunc(slices.Clone(r.Rows), func(row drain.Row) bool { return row.State != drain.Stays && row.State != drain.Refused })
	if len(rest) == 0 {
		return nil
	}
	list := listed(rest, r.Cluster, func(row *drain.Row) string { return row.Says() })
	more, last := "", ". "
	if n := len(rest) - shown; n > 0 {
		more = fmt.Sprintf("\n  and %d more, which flotilla drain %s --dry-run lists", n, r.Cluster)
	}
	if len(rest) > 1 {
		last = "\n"
	}
	if r.DryRun {
		if n := len(rest) - shown; n > 0 {
			more = fmt.Sprintf("\n  and %d more, as listed", n)
		}
		return command.Lines(fmt.Errorf("%d of %d would stay in %s:%s%s", len(rest), len(r.Rows), r.Cluster, list, more))
	}
	stay := "stay"
	if len(rest) == 1 {
		stay = "stays"
	}
	return command.Lines(fmt.Errorf("%d of %d %s in %s%s:%s%s%sWhat finds a place later still goes; flotilla uncordon %s ends the drain",
		len(rest), len(r.Rows), stay, r.Cluster, r.ended(), list, more, last, r.Cluster))
}

// listed returns the first rows, with why each is there and what to do: one behind a space, several with a line each, where
// what is the same for some is said once.
func listed(rows []drain.Row, cluster string, why func(*drain.Row) string) string {
	var out strings.Builder
	first := map[string]string{} // of each reason, the template
	for i := range rows[:min(len(rows), shown)] {
		row := &rows[i]
		text := ": " + why(row)
		if before := first[why(row)]; before != "" {
			text = ": the same as " + before
		} else {
			first[why(row)] = row.Title()
		}
		next, givesUp := drain.Brief(row)
		if next != "" {
			text += ": " + next
		}
		if givesUp {
			text += "; flotilla drain " + cluster + " --dry-run -o json has the command that gives the old copy up"
		}
		begin := "\n  "
		if len(rows) == 1 {
			begin = " "
		}
		out.WriteString(begin + row.Title() + text)
	}
	return out.String()
}

// ended says how many have left where others have finished there, which is no reason to wait: " (2 left, 1 finished there)";
// empty where none have.
func (r Report) ended() string {
	t := drain.Count(r.Rows)
	if t.Finished == 0 {
		return ""
	}
	return " (" + drain.Totals{Left: t.Left, Gone: t.Gone, Finished: t.Finished}.String() + ")"
}

// Done says that the drain is over.
func (r Report) Done(out io.Writer) error {
	_, err := fmt.Fprintf(out, "cluster/%s drained%s; flotilla uncordon %[1]s --return has what was moved placed anew\n", r.Cluster, r.ended())
	return err
}
