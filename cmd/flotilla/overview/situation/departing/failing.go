package departing

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Failing returns what to add to the message that a template is not ready in a cluster of a fleet, if its policy moves it for that:
// "; unhealthy since 12:00:00 UTC, it moves at 12:05:00 UTC unless it is healthy by then". Empty where it does not, and where it is
// known that it cannot be moved, which is told apart.
func Failing(b workv1alpha2.Binding, cluster string, fleet []*clusterv1alpha1.Cluster, now time.Time) string {
	at := slices.IndexFunc(fleet, func(c *clusterv1alpha1.Cluster) bool { return c.Name == cluster })
	spec := b.BindingSpec()
	if at < 0 || spec.Failover == nil || spec.Placement == nil || b.GetDeletionTimestamp() != nil {
		return ""
	}
	record, _ := placement.RecordOf(b)
	leaving, fails := failover.Fails(fleet[at], b, ptr.Deref(record.Moves, failover.Moves{}), now)
	switch {
	case !fails, record.Stays != nil && slices.Contains(record.Stays.Clusters, cluster):
		return ""
	case !elsewhere(spec.Placement, cluster, fleet):
		return "; " + leaving.Why + ", it should move, and has no other place"
	case leaving.At.After(now):
		return "; " + leaving.Why + ", it moves at " + clock(leaving.At.Time) + " UTC unless it is healthy by then"
	default:
		return "; " + leaving.Why + ", it moves now"
	}
}
