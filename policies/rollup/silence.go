package rollup

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// Silence says that nothing is heard of a cluster any more, or not all: what it reported last
// was so then, and nobody knows whether it still is.
type Silence struct {
	// Cause is what is wrong, such as "unreachable".
	Cause string
	// Since is when that was noticed.
	Since time.Time
	// Away says that what is removed from it waits until it is back: see failover.Away.
	Away bool
}

// Silences are the clusters of which nothing is heard, by name.
type Silences map[string]Silence

// causes say in few words why nothing is heard of a cluster. Of any other reason it is
// reported that the cluster is not ready. How long is known of that alone: what may have come
// later, when it was not ready already, says so.
var causes = map[string]string{
	clusterv1alpha1.ClusterNotReachableReason:       "unreachable",
	clusterv1alpha1.ClusterStatusUnknownReason:      "not heard of",
	clusterv1alpha1.ClusterStatusNeverUpdatedReason: "not heard of",
	clusterv1alpha1.ClusterNotHeardYetReason:        "not heard of yet: the control plane has been up",
	clusterv1alpha1.ClusterCredentialsRefusedReason: "refusing the credentials, not ready",
	clusterv1alpha1.ClusterAnswersAgainReason:       "answering again, not ready",
	clusterv1alpha1.ClusterClaimedReason:            "claimed by another control plane, not ready",
	clusterv1alpha1.ClusterIdentityMismatchReason:   "another cluster than the one that joined, not ready",
}

// Has reports whether nothing is heard of a cluster.
func (s Silences) Has(cluster string) bool {
	_, silent := s[cluster]
	return silent
}

// Away reports whether what is removed from a cluster waits until it is back.
func (s Silences) Away(cluster string) bool { return s[cluster].Away }

// AsReported stands by what is counted where the clusters may not be read: nobody there knows
// which of them are silent.
const AsReported = "as the clusters reported last"

// unread is the cause where a cluster answers, and some of its objects cannot be read. What they
// were last may be long gone, on whichever kind it is.
const unread = "not to be read in full"

// SilenceOf returns why nothing is heard of a cluster, or not all; false for one that is ready, and
// for one that nobody has looked at yet.
func SilenceOf(c *clusterv1alpha1.Cluster) (Silence, bool) {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil {
		return Silence{}, false
	}
	if ready.Status == metav1.ConditionTrue {
		blind := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionObjectsUnread)
		if blind == nil || blind.Status != metav1.ConditionTrue {
			return Silence{}, false
		}
		return Silence{Cause: unread, Since: blind.LastTransitionTime.Time}, true
	}
	cause, known := causes[ready.Reason]
	if !known {
		cause = "not ready"
	}
	return Silence{Cause: cause, Since: ready.LastTransitionTime.Time, Away: failover.Away(c)}, true
}

// SilencesOf returns those of many clusters; nil for none.
func SilencesOf(clusters []clusterv1alpha1.Cluster) Silences {
	var out Silences
	for i := range clusters {
		if s, silent := SilenceOf(&clusters[i]); silent {
			if out == nil {
				out = Silences{}
			}
			out[clusters[i].Name] = s
		}
	}
	return out
}

// String is "unreachable since 2026-01-02 15:04 UTC": a text that stays true, for where it
// is not written anew as time passes.
func (s Silence) String() string {
	return s.Cause + " since " + s.Since.UTC().Format("2006-01-02 15:04 UTC")
}

// For is "unreachable for 3m".
func (s Silence) For(now time.Time) string {
	return s.Cause + " for " + duration.HumanDuration(max(now.Sub(s.Since), 0))
}
