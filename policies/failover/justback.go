package failover

import (
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// returnGrace is how long after its return it is known that a cluster is not placed
// in again: its taints have to go first, and what was moved off it be decided anew.
const returnGrace = 20 * time.Second

// JustBackUntil returns until when a cluster that is there counts as just back:
// what runs there may be wanted again, and is not removed yet. It is zero where that is
// over, and for one that is away. One that has come back in the future has not done
// so right now: the clock was set back since.
func JustBackUntil(c *clusterv1alpha1.Cluster, now time.Time) time.Time {
	ready := readiness(c)
	if ready == nil || Away(c) || ready.LastTransitionTime.After(now) {
		return time.Time{}
	}
	if until := ready.LastTransitionTime.Add(returnGrace); until.After(now) {
		return until
	}
	return time.Time{}
}
