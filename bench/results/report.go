// Package results keeps what was measured, beside what was promised.
//
// In go figures with their goals and raw samples; out come a table, a summary as
// JSON, and two summaries side by side. It measures nothing.
package results

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// result is one line of the table. Value and Goal share the unit.
type result struct {
	Row   string  `json:"row"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Goal is the most that is allowed, or the least of a rate; null where there
	// is none.
	Goal *float64 `json:"goal"`
	Met  bool     `json:"met"`

	least bool // Goal is a lower bound
}

// Report is figures and their goals.
type Report struct {
	// Dir is where raw samples go.
	Dir     string
	results []result
}

// AtMost adds a figure that must not exceed the goal.
func (r *Report) AtMost(row, name string, value float64, unit string, goal float64) {
	r.results = append(r.results, result{Row: row, Name: name, Value: Round(value), Unit: unit, Goal: &goal, Met: value <= goal})
}

// AtLeast adds a figure that must reach the goal.
func (r *Report) AtLeast(row, name string, value float64, unit string, goal float64) {
	r.results = append(r.results, result{Row: row, Name: name, Value: Round(value), Unit: unit, Goal: &goal, Met: value >= goal, least: true})
}

// Note adds a figure without a goal, for those who ask why.
func (r *Report) Note(row, name string, value float64, unit string) {
	r.results = append(r.results, result{Row: row, Name: name, Value: Round(value), Unit: unit, Met: true})
}

// Raw keeps samples in a file of their own.
func (r *Report) Raw(name string, samples any) error {
	content, err := json.MarshalIndent(samples, "", "  ")
	if err != nil {
		return fmt.Errorf("write the samples of %s: %w", name, err)
	}
	return r.file(filepath.Join(r.Dir, name+".json"), content)
}

// Profile keeps a profile in a file of its own, for go tool pprof.
func (r *Report) Profile(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(r.Dir, name+".pb.gz"), content, 0o644); err != nil {
		return fmt.Errorf("write the profile %s: %w", name, err)
	}
	return nil
}

// Write writes the summary.
func (r *Report) Write(path string) error {
	content, err := json.MarshalIndent(r.results, "", "  ")
	if err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return r.file(path, content)
}

func (r *Report) file(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of the results: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// Print prints the table.
func (r *Report) Print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ROW\tWHAT\tVALUE\tGOAL\tMET")
	for _, line := range r.results {
		goal, met := "", ""
		if line.Goal != nil {
			bound := map[bool]string{true: "≥", false: "≤"}[line.least]
			goal = fmt.Sprintf("%s %g %s", bound, *line.Goal, line.Unit)
			met = map[bool]string{true: "yes", false: "NO"}[line.Met]
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%g %s\t%s\t%s\n", line.Row, line.Name, line.Value, line.Unit, goal, met)
	}
	_ = table.Flush()
}

// Round keeps three digits.
func Round(v float64) float64 { return math.Round(v*1000) / 1000 }

// Percentile is the value below which the given share of the samples lies.
func Percentile(samples []float64, share float64) float64 {
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	index := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[max(0, index)]
}
