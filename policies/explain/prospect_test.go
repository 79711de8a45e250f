package explain_test

import (
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/policies/explain"
)

// TestADecisionThatChangesNothing: that one is due does not sound as if the clusters were about to change.
func TestADecisionThatChangesNothing(t *testing.T) {
	e := &explain.Explanation{Placement: &explain.Placement{
		Stands: &explain.Standing{Clusters: []explain.Target{{Name: "east"}}},
		Now:    &explain.Prospect{Clusters: []explain.Target{{Name: "east"}}, Same: true, Due: "follows the clusters that fit"},
	}}
	const want = "now would stay where it is, decided anew, too; a decision is due: follows the clusters that fit"
	if got := strings.Join(strings.Fields(e.Text(explain.TextOptions{Width: 200})), " "); !strings.Contains(got, want) {
		t.Errorf("%q, want %q in it", got, want)
	}
}
