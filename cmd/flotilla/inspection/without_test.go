package inspection

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// TestWithoutMetrics: the error names the clusters without metrics-server.
func TestWithoutMetrics(t *testing.T) {
	answers := []fleet.Answer[usageOf]{{Cluster: "east", Err: errNoMetrics}, {Cluster: "north", Err: errors.New("away")}, {Cluster: "south"}, {Cluster: "west", Err: errNoMetrics}}
	if diff := cmp.Diff([]string{"east", "west"}, withoutMetrics(answers)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
