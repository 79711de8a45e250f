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
		return prefixed("+", linesOf(c.After)[0])
	case c.Before == nil || c.After == nil:
		return nil
	}
	both := linesOf(c.Before, c.After)
	before, after := both[0], both[1]
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

// linesOf returns the lines of manifests, each with its end: of YAML, or, where one holds what YAML cannot, of JSON.
func linesOf(manifests ...map[string]any) [][]string {
	out := make([][]string, len(manifests))
	for i, obj := range manifests {
		data, err := yaml.Marshal(obj)
		if err != nil {
			return jsonOf(manifests)
		}
		out[i] = slices.Collect(strings.Lines(string(data)))
	}
	return out
}

func jsonOf(manifests []map[string]any) [][]string {
	out := make([][]string, len(manifests))
	for i, obj := range manifests {
		data, err := indented(obj)
		if err != nil {
			data = []byte(err.Error()) // values came from JSON
		}
		out[i] = slices.Collect(strings.Lines(printable(string(data))))
	}
	return out
}
