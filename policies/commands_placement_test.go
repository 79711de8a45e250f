package policies_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/placement"
)

// explanation prints a trace, term by term.
func explanation(t placement.Trace) string {
	var out []string
	for _, term := range t.Terms {
		if term.Name != "" {
			out = append(out, "affinity "+term.Name+":")
		}
		for _, v := range term.Verdicts {
			out = append(out, v.Cluster+": "+verdict(v))
		}
		if term.Spread != "" {
			out = append(out, "spread: "+term.Spread)
		}
		if term.Division != "" {
			out = append(out, "division: "+term.Division)
		}
		if term.Err != nil {
			out = append(out, term.Err.Error())
		}
	}
	return strings.Join(out, "\n")
}

func verdict(v placement.Verdict) string {
	if v.Refused != "" {
		return v.Refused + ": " + v.Reason
	}
	parts := []string{"fits"}
	for _, name := range slices.Sorted(maps.Keys(v.Scores)) {
		if v.Scores[name] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, v.Scores[name]))
		}
	}
	if v.Tier > 0 {
		parts = append(parts, fmt.Sprintf("overflow %d", v.Tier))
	}
	if v.Held > 0 {
		parts = append(parts, fmt.Sprintf("runs %d", v.Held))
	}
	if v.Available >= 0 {
		parts = append(parts, fmt.Sprintf("room for %d in all", v.Available))
	}
	if !v.Selected {
		parts = append(parts, "left out")
	}
	return strings.Join(parts, ", ")
}
