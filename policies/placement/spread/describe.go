package spread

import (
	"fmt"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// Describe says in words what was chosen from in; empty where there was no
// choice.
func Describe(in Input, chosen []framework.Candidate) string {
	if len(in.Placement.SpreadConstraints) == 0 {
		return ""
	}
	if replicas.Static(in.Placement.ReplicaScheduling) {
		return "fixed weights: spread constraints do not count"
	}
	return fmt.Sprintf("%d of %d clusters that fit", len(chosen), len(in.Candidates))
}
