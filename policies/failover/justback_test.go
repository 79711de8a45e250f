package failover_test

import (
	"testing"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestJustBackUntil checks for how long a cluster that was lost may yet be placed in again.
func TestJustBackUntil(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		want    time.Duration // from now on
	}{
		"it came back a moment ago":             {member("a", "", ago(5*time.Second)), 15 * time.Second},
		"it did so a while ago":                 {member("a", "", ago(20*time.Second)), 0},
		"it has been there all along":           {member("a", "", long), 0},
		"it came back before the clock was set": {member("a", "", ago(-time.Hour)), 0},
		"it was lost a moment ago":              {member("a", clusterv1alpha1.ClusterNotReachableReason, ago(5*time.Second)), 0},
		"it answers again":                      {member("a", clusterv1alpha1.ClusterAnswersAgainReason, ago(5*time.Second)), 0},
		"its status cannot be read":             {member("a", clusterv1alpha1.ClusterStatusCollectionFailedReason, ago(5*time.Second)), 15 * time.Second},
		"it is new":                             {&clusterv1alpha1.Cluster{}, 0},
	} {
		got := time.Duration(0)
		if until := failover.JustBackUntil(tc.cluster, noon); !until.IsZero() {
			got = until.Sub(noon)
		}
		if got != tc.want {
			t.Errorf("%s: for %s, want %s", name, got, tc.want)
		}
	}
}
