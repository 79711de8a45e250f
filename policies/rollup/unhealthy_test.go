package rollup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestUnhealthySince checks that the time is set once, with the health, is
// removed with it, and is set only where the policy moves unhealthy applications.
func TestUnhealthySince(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: "web"}}
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	for _, step := range []struct {
		what   string
		health workv1alpha1.ResourceHealth
		after  time.Duration
		want   time.Duration // since when, after noon; negative for not
	}{
		{"healthy", workv1alpha1.ResourceHealthy, 0, -1},
		{"unhealthy", workv1alpha1.ResourceUnhealthy, time.Minute, time.Minute},
		{"still so", workv1alpha1.ResourceUnhealthy, 2 * time.Minute, time.Minute},
		{"not known", workv1alpha1.ResourceUnknown, 3 * time.Minute, -1},
		{"unhealthy again", workv1alpha1.ResourceUnhealthy, 4 * time.Minute, 4 * time.Minute},
	} {
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: step.health}}
		b.Status = rollup.Status(b, rollup.Report{Works: []*workv1alpha1.Work{work}, Now: noon.Add(step.after)})
		got := time.Duration(-1)
		if since := b.Status.AggregatedStatus[0].UnhealthySince; since != nil {
			got = since.Sub(noon)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
	b.Spec.Failover = nil
	if status := rollup.Status(b, rollup.Report{Works: []*workv1alpha1.Work{work}, Now: noon}); status.AggregatedStatus[0].UnhealthySince != nil {
		t.Errorf("although nothing is moved: %+v", status.AggregatedStatus)
	}
}
