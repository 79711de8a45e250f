package situation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestAnApplicationThatIsToBeMoved: of what is unhealthy it is said since when, and when it is moved for that.
func TestAnApplicationThatIsToBeMoved(t *testing.T) {
	since := metav1.NewTime(now.Add(-time.Minute))
	for name, tc := range map[string]struct {
		clusters []string // of the fleet
		change   func(*workv1alpha2.ResourceBinding)
		want     string
	}{
		"its policy moves it":       {clusters: []string{"east", "west"}, want: "Deployment shop/web in east: not ready; unhealthy since 09:29:00 UTC, it moves at 09:30:31 UTC unless it is healthy by then\n"},
		"it was moved a moment ago": {clusters: []string{"east", "west"}, change: moved(placement.Record{Moves: &failover.Moves{Count: 1, At: since}}), want: "; unhealthy since 09:29:00 UTC, after a move for the same reason: the fault may be the application's own, it moves at 09:32:01 UTC unless it is healthy by then\n"},
		"there is no other cluster": {clusters: []string{"east"}, want: "; unhealthy since 09:29:00 UTC, it should move, and has no other place\n"},
		"it cannot be moved, which is told apart": {clusters: []string{"east"}, change: moved(placement.Record{Stays: &unplaced.Stays{Clusters: []string{"east"}, Message: "a"}}),
			want: "Deployment shop/web in east: not ready\n"},
		"its policy does not move it": {clusters: []string{"east", "west"}, change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Failover = nil }, want: "Deployment shop/web in east: not ready\n"},
		"it should have been moved": {clusters: []string{"east", "west"}, change: func(b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus[0].UnhealthySince = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		}, want: ", it moves now\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			for _, cluster := range tc.clusters {
				s.Cluster(member(cluster), time.Time{})
			}
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
			b.Spec.Clusters, b.Spec.Placement, b.Spec.PropagateDeps = []workv1alpha2.TargetCluster{{Name: "east"}}, &policyv1alpha1.Placement{}, true
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](90)}}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: &since}}
			propagation.ClaimOf(carrying("web", 1)).Set(b)
			if tc.change != nil {
				tc.change(b)
			}
			s.Binding(b, nil)
			if got := string(text(t, s.Fleet(), true)); !strings.Contains(got, tc.want) {
				t.Errorf("%s\nis not in\n%s", tc.want, got)
			}
		})
	}
}

// moved returns what puts the record of a decision on a binding.
func moved(record placement.Record) func(*workv1alpha2.ResourceBinding) {
	record.Reason = workv1alpha2.BindingReasonSuccess
	return func(b *workv1alpha2.ResourceBinding) {
		b.Annotations = placement.Decision{Record: record}.Annotations()
	}
}
