package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// TestSinceWhen: a cluster is not ready since it failed, and not only since that was sure; it
// is ready again since the control plane says so, which gives its taints the time to go.
func TestSinceWhen(t *testing.T) {
	now := time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	for name, tc := range map[string]struct {
		was   *metav1.Condition
		is    outcome
		began time.Duration // ago; zero: not known
		want  metav1.Time
	}{
		"it has failed for half a minute":     {&metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Hour)}, unreachable, 30 * time.Second, ago(30 * time.Second)},
		"it is seen for the first time":       {nil, well, 5 * time.Second, ago(0)},
		"it fails when it is seen first":      {nil, unreachable, 5 * time.Second, ago(5 * time.Second)},
		"it has answered for half a minute":   {&metav1.Condition{Status: metav1.ConditionFalse, LastTransitionTime: ago(time.Hour)}, well, 30 * time.Second, ago(0)},
		"it failed before, and fails still":   {&metav1.Condition{Status: metav1.ConditionFalse, LastTransitionTime: ago(time.Hour)}, unreachable, 30 * time.Second, ago(time.Hour)},
		"nobody knows since when":             {&metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Hour)}, unreachable, 0, ago(0)},
		"it turned otherwise in the meantime": {&metav1.Condition{Status: metav1.ConditionFalse, LastTransitionTime: ago(time.Minute)}, well, time.Hour, ago(0)},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, nil, nil, Options{Clock: clocktesting.NewFakeClock(now)})
			s := &state{cluster: &clusterv1alpha1.Cluster{}, seen: &observation{outcome: tc.is}}
			if tc.was != nil {
				tc.was.Type = clusterv1alpha1.ClusterConditionReady
				s.cluster.Status.Conditions = []metav1.Condition{*tc.was}
			}
			if tc.began != 0 {
				s.seen.began = now.Add(-tc.began)
			}
			if _, err := r.describe(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if got := s.status.Conditions[0].LastTransitionTime; !got.Equal(&tc.want) {
				t.Errorf("since %s, want %s", got, tc.want)
			}
		})
	}
}
