package rollup

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// Silence is that a cluster is not heard of any more, or not in full: its last report may no longer be true.
type Silence struct {
	// Cause is why, such as "unreachable".
	Cause string
	// Since is when that was noticed.
	Since time.Time
	// Away means that objects cannot be removed from the cluster until it is back: see failover.Away.
	Away bool
}

// Silences are the clusters that are not heard of, by name.
type Silences map[string]Silence

// causes are short texts for why a cluster is not heard of; for all other reasons it is "not ready". A condition's
// time is that of its status: where the reason changed later, while the cluster was not ready already, the text
// ends with "not ready", as only that has lasted since.
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

// Has reports whether the cluster is not heard of.
func (s Silences) Has(cluster string) bool {
	_, silent := s[cluster]
	return silent
}

// Away reports whether objects cannot be removed from the cluster until it is back.
func (s Silences) Away(cluster string) bool { return s[cluster].Away }

// AsReported is added to counts where the user may not read the clusters, so that
// it is not known which of them are silent.
const AsReported = "as the clusters reported last"

// unread is the cause for a cluster that answers and of which some objects cannot
// be read: any object may have changed since it was last reported.
const unread = "not to be read in full"

// SilenceOf returns why a cluster is not heard of, or not in full; false for one
// that is ready, and for one without a Ready condition yet.
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

// SilencesOf returns those of clusters that are not heard of; nil for none.
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

// Add adds a cluster if it is not heard of.
func (s Silences) Add(c *clusterv1alpha1.Cluster) {
	if silence, silent := SilenceOf(c); silent {
		s[c.Name] = silence
	}
}

// Among returns which clusters of a placement are not heard of, but for those that answer and cannot be read in full,
// and that as text: "west is unreachable since 2026-01-02 15:04 UTC". It is empty for none.
func (s Silences) Among(targets []workv1alpha2.TargetCluster) (names []string, text string) {
	var texts []string
	for _, target := range targets {
		if silence, silent := s[target.Name]; silent && silence.Cause != unread {
			names, texts = append(names, target.Name), append(texts, target.Name+" is "+silence.String())
		}
	}
	return names, strings.Join(texts, ", ")
}

// String returns a text that stays true as time passes, for where it is stored:
// "unreachable since 2026-01-02 15:04 UTC".
func (s Silence) String() string {
	return s.Cause + " since " + s.Since.UTC().Format("2006-01-02 15:04 UTC")
}

// For returns a text for the moment, as in "unreachable for 3m".
func (s Silence) For(now time.Time) string {
	return s.Cause + " for " + duration.HumanDuration(max(now.Sub(s.Since), 0))
}
