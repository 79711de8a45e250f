package drain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestPlanForAnyTaint: what an administrator's own taint moves is decided as a drain is, where failover is on, and nothing
// leaves where it is off.
func TestPlanForAnyTaint(t *testing.T) {
	only := divided()
	only.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
	on := placement.Options{Failover: failover.Rules{Taints: true, State: true}}
	const refused = "no other place: 0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 1 cluster(s) had untolerated taint {repair:NoExecute}"
	for name, tc := range map[string]struct {
		binding    workv1alpha2.Binding
		scheduling placement.Options
		want       string
	}{
		"it goes":                 {running("web", 2, divided()), on, "Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy)\n"},
		"failover is off":         {running("web", 2, divided()), placement.Options{}, "Stays Deployment shop/web: east=2 ->  (failover is off)\n"},
		"its policy tolerates it": {running("web", 2, tolerating(divided(), nil)), on, "Stays Deployment shop/web: east=2 ->  (its policy tolerates the taint)\n"},
		"it does so for a while":  {running("web", 2, tolerating(divided(), ptr.To[int64](90))), on, "Waits Deployment shop/web: east=2 ->  (east at 12:02:30 UTC (in 90s): untolerated taint {repair:NoExecute})\n"},
		"it may run nowhere else": {running("web", 2, only), on, "Refused Deployment shop/web: east=2 ->  (" + refused + "): give its policy another cluster; what each says: flotilla explain deployment/web -n shop\n"},
		"no policy carries it":    {running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }), on, "Stays Deployment shop/web: east=2 ->  (no policy carries it): have a policy carry it, or delete Deployment shop/web; how policies see it: flotilla explain deployment/web -n shop\n"},
		"it is elsewhere":         {running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Name = "west" }), on, ""},
		"its scheduling is paused": {running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
		}), on, "Stays Deployment shop/web: east=2 ->  (its scheduling is suspended): set suspension.scheduling: false in its policy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := drain.Plan(drain.Input{
				Cluster: "east", Clusters: []*clusterv1alpha1.Cluster{cluster("east", 9), cluster("west", 9)}, Bindings: []workv1alpha2.Binding{tc.binding},
				Taints: []corev1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}, Scheduling: tc.scheduling, Now: noon.Add(time.Minute),
			})
			if diff := cmp.Diff(tc.want, text(rows)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
