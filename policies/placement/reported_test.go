package placement_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestWhatIsReportedOnce: a cluster that comes and goes, whose templates have no other place, is reported once, until the reason
// is another one, or an hour has passed.
func TestWhatIsReportedOnce(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	b := placedOn(t, deployment(2, policyv1alpha1.Placement{}), "a:9", "a:2", noon)
	opts := placement.Options{Failover: failover.Rules{Taints: true}}
	for i, step := range []struct {
		after    time.Duration
		taint    string // none if empty
		reported time.Duration
		is       bool // that something is there which was reported
	}{
		{after: 0, taint: "drill", reported: 0, is: true},
		{after: 20 * time.Second, reported: 0, is: true},
		{after: 40 * time.Second, taint: "drill", reported: 0, is: true},
		{after: time.Minute, reported: 0, is: true},
		{after: 2 * time.Minute, taint: "fire", reported: 2 * time.Minute, is: true},
		{after: 3 * time.Minute, taint: "drill", reported: 3 * time.Minute, is: true},
		{after: 2 * time.Hour, taint: "drill", reported: 3 * time.Minute, is: true},
		{after: 2*time.Hour + time.Minute},
		{after: 2*time.Hour + 2*time.Minute, taint: "drill", reported: 2*time.Hour + 2*time.Minute, is: true},
	} {
		now := noon.Add(step.after)
		c := cluster("a", 9, func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"})
			if step.taint != "" {
				c.Spec.Taints = []corev1.Taint{{Key: step.taint, Effect: corev1.TaintEffectNoExecute, TimeAdded: ptr.To(metav1.NewTime(now))}}
			}
		})
		d, changed := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot([]*clusterv1alpha1.Cluster{c}), Now: now}, opts)
		if changed {
			d.Put(b)
		}
		record, _ := placement.RecordOf(b)
		if (record.Stays != nil) != (step.taint != "") {
			t.Errorf("step %d: it stays: %+v", i, record.Stays)
		}
		if (record.EvictionReported != nil) != step.is || step.is && !record.EvictionReported.At.Time.Equal(noon.Add(step.reported)) {
			t.Errorf("step %d: told %+v, want %s (%t)", i, record.EvictionReported, noon.Add(step.reported), step.is)
		}
	}
}
