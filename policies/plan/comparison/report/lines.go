package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// mostCompared is how many lines of manifests are compared line by line; of longer ones the fields are listed.
const mostCompared = 20_000

// difference returns the lines of a change as a unified diff of YAML, without a header.
func difference(c comparison.Change) []string {
	switch {
	case c.Action == comparison.Created || c.Unknown:
		return prefixed("+", yamlLines(c.After))
	case c.Before == nil || c.After == nil:
		return nil
	}
	before, after := yamlLines(c.Before), yamlLines(c.After)
	if len(before)+len(after) > mostCompared {
		return fields(c)
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: before, B: after, Context: 3})
	if err != nil {
		return fields(c) // a buffer takes everything
	}
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, excerpt.Visible(strings.TrimSuffix(line, "\n")))
	}
	return out
}

// fields lists the fields that change.
func fields(c comparison.Change) []string {
	var out []string
	for _, f := range c.Fields {
		out = append(out, fmt.Sprintf("! %s: %s", excerpt.Inline(f.Path), excerpt.Inline(f.Text())))
	}
	return out
}

func prefixed(sign string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = excerpt.Visible(sign + strings.TrimSuffix(line, "\n"))
	}
	return out
}

// yamlLines returns the lines of a manifest, each with its end.
func yamlLines(obj map[string]any) []string {
	data, err := yaml.Marshal(obj)
	if err != nil {
		return []string{err.Error() + "\n"} // values came from JSON
	}
	return slices.Collect(strings.Lines(string(data)))
}
