package results

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// Compare prints two summaries side by side: what both have in the order of the
// second, then what only the first has. Times may be compared only if both were
// measured on the same machine, with nothing else going on.
func Compare(out io.Writer, before, after string) error {
	was, err := read(before)
	if err != nil {
		return err
	}
	is, err := read(after)
	if err != nil {
		return err
	}
	old := map[string]result{}
	for _, line := range was {
		old[line.Name] = line
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ROW\tWHAT\tBEFORE\tAFTER\tCHANGE")
	for _, line := range is {
		first, both := old[line.Name]
		delete(old, line.Name)
		if !both {
			_, _ = fmt.Fprintf(table, "%s\t%s\t\t%g %s\tnew\n", line.Row, line.Name, line.Value, line.Unit)
			continue
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%g %s\t%g %s\t%s\n", line.Row, line.Name, first.Value, first.Unit, line.Value, line.Unit, changed(first, line))
	}
	for _, line := range was {
		if _, only := old[line.Name]; only {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%g %s\t\tgone\n", line.Row, line.Name, line.Value, line.Unit)
		}
	}
	return table.Flush()
}

// changed says by how much a figure changed, and whether its goal was lost or
// reached by that.
func changed(before, after result) string {
	out := "="
	switch {
	case before.Value == 0 && after.Value != 0:
		out = "from nothing"
	case before.Value != after.Value:
		out = fmt.Sprintf("%+.0f %%", 100*(after.Value-before.Value)/before.Value)
	}
	switch {
	case before.Met && !after.Met:
		out += ", misses its goal now"
	case !before.Met && after.Met:
		out += ", meets its goal now"
	}
	return out
}

func read(path string) ([]result, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a summary: %w", err)
	}
	var out []result
	if err := json.Unmarshal(content, &out); err != nil {
		return nil, fmt.Errorf("read the summary %s: %w", path, err)
	}
	return out, nil
}
