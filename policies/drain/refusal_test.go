package drain_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestWhatNoClusterIsGivenIsRefused: a template of which the clusters that it moves to get no copy does not leave, however it would.
func TestWhatNoClusterIsGivenIsRefused(t *testing.T) {
	const held, late = propagation.HeldBack + ", for a reason", "nothing starts before the copy has left east"
	now := time.Unix(1_900_000_000, 0)
	for name, tc := range map[string]struct {
		faults propagation.ClusterFaults
		mode   policyv1alpha1.PurgeMode
		state  drain.State
		why    string
	}{
		"each is given one":                   {nil, policyv1alpha1.PurgeModeDirectly, drain.Leaves, "the old copy goes"},
		"none is yet, as the old one goes":    {propagation.ClusterFaults{"west": late, "north": late}, policyv1alpha1.PurgeModeDirectly, drain.Leaves, "the old copy goes"},
		"one of them is":                      {propagation.ClusterFaults{"west": held}, policyv1alpha1.PurgeModeDirectly, drain.Leaves, "the old copy goes"},
		"none is, and the old one goes first": {propagation.ClusterFaults{"west": held, "north": held + "."}, policyv1alpha1.PurgeModeDirectly, drain.Refused, "west does not get it: " + held + "; north does not get it: " + held},
		"none is, and the old one goes last":  {propagation.ClusterFaults{"west": held, "north": held}, policyv1alpha1.PurgeModeGracefully, drain.Refused, "west does not get it: " + held + "; north does not get it: " + held},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			if tc.faults != nil {
				b.Annotations = map[string]string{propagation.ClusterFaultsAnnotation: tc.faults.Text()}
			}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}, {Name: "north"}}
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", PurgeMode: tc.mode, CreationTimestamp: &metav1.Time{Time: now}}}
			row, is := drain.RowOf(b, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, now)
			if !is || row.State != tc.state || row.Why != tc.why {
				t.Errorf("%s: %q, want %s: %q", row.State, row.Why, tc.state, tc.why)
			}
		})
	}
}
