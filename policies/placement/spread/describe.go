package spread

import (
	"fmt"
	"strings"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// Describe says in words what was chosen from in; empty where there are no
// constraints.
func Describe(in Input, chosen []framework.Candidate) string {
	if len(in.Placement.SpreadConstraints) == 0 {
		return ""
	}
	if !Counts(in.Placement) {
		return "replicas are divided by fixed weights: spread constraints do not count"
	}
	r, err := rulesOf(in.Placement.SpreadConstraints)
	if err != nil {
		return ""
	}
	texts := []string{fmt.Sprintf("%d of the %d clusters that fit (%s wanted)", len(chosen), len(in.Candidates), r.clusters.text("clusters"))}
	for _, d := range r.dimensions {
		groups := groupsOf(d.Grouping, chosen)
		texts = append(texts, fmt.Sprintf("%s %s (%s wanted)", d, list(groups), d.text(d.Plural())))
	}
	return strings.Join(texts, "; ")
}
