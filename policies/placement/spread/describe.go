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
	if !counts(in.Placement) {
		return "replicas are divided by fixed weights: spread constraints do not count"
	}
	r, err := rulesOf(in.Placement.SpreadConstraints)
	if err != nil {
		return ""
	}
	texts := []string{fmt.Sprintf("%d of %s, wanted %s", len(chosen), fitting(len(in.Candidates)), r.clusters.text(byCluster))}
	for _, d := range r.dimensions {
		texts = append(texts, fmt.Sprintf("%s %s, wanted %s", d, list(groupsOf(d.Grouping, chosen)), d.text(d.Grouping)))
	}
	return strings.Join(texts, "; ")
}

func fitting(n int) string {
	if n == 1 {
		return "1 cluster that fits"
	}
	return fmt.Sprintf("%d clusters that fit", n)
}
