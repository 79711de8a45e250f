package drain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// TestPlanSaysWhatClustersLack: fixed weights and whole copies are placed without a look at room, and nobody looks at the share
// that a cluster has of a quota. The plan does, and says what the new copies will wait for.
func TestPlanSaysWhatClustersLack(t *testing.T) {
	weighted, whole := divided(), policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	weighted.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{
		{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east", "west"}}, Weight: 1},
	}}
	seen := func(milli int64) map[string]drain.Seen {
		x := &nodes.Index{}
		x.Node("node", &nodes.Node{Name: "node", Allocatable: nodes.Amounts{{Name: corev1.ResourceCPU, N: milli}, {Name: corev1.ResourcePods, N: 110}}})
		return map[string]drain.Seen{"west": {Index: x}}
	}
	share := func(limit corev1.ResourceName, hard, used string) *policyv1alpha1.FederatedResourceQuota {
		q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
		q.Spec.StaticAssignments = []policyv1alpha1.StaticClusterAssignment{{ClusterName: "west", Hard: corev1.ResourceList{limit: resource.MustParse(hard)}}}
		if used != "" {
			q.Status.AggregatedStatus = []policyv1alpha1.ClusterQuotaStatus{{ClusterName: "west", ResourceQuotaStatus: corev1.ResourceQuotaStatus{Used: corev1.ResourceList{limit: resource.MustParse(used)}}}}
		}
		return q
	}
	for name, tc := range map[string]struct {
		bindings []workv1alpha2.Binding
		seen     map[string]drain.Seen
		quota    *policyv1alpha1.FederatedResourceQuota
		want     []string
	}{
		"there is enough":                              {bindings: []workv1alpha2.Binding{running("web", 2, weighted, each("1"))}, seen: seen(2000), want: []string{""}},
		"nothing is known of the nodes":                {bindings: []workv1alpha2.Binding{running("web", 2, weighted, each("1"))}, want: []string{""}},
		"the nodes have room for one, of fixed weight": {bindings: []workv1alpha2.Binding{running("web", 2, weighted, each("1"))}, seen: seen(1900), want: []string{"west has room for 1 of 2 more by its nodes and quotas, at which its policy does not look"}},
		"they have none for a whole copy":              {bindings: []workv1alpha2.Binding{running("web", 2, whole, each("1"))}, seen: seen(900), want: []string{"west has room for 0 of 2 more by its nodes and quotas, at which its policy does not look"}},
		"the first takes the room": {bindings: []workv1alpha2.Binding{running("web", 2, weighted, each("1")), running("api", 2, weighted, each("1"))}, seen: seen(3000),
			want: []string{"", "west has room for 1 of 2 more by its nodes and quotas, at which its policy does not look"}},
		"its part of a quota is used up":            {bindings: []workv1alpha2.Binding{running("web", 2, weighted, each("1"))}, quota: share("requests.cpu", "3", "2"), want: []string{"the share of west of FederatedResourceQuota shop/team is exceeded: requests.cpu: 2 of 3 are used, 2 more are asked for"}},
		"of what is divided by room, too":           {bindings: []workv1alpha2.Binding{running("web", 2, divided(), each("1"))}, quota: share("cpu", "3", "2"), want: []string{"the share of west of FederatedResourceQuota shop/team is exceeded: cpu: 2 of 3 are used, 2 more are asked for"}},
		"pods are limited":                          {bindings: []workv1alpha2.Binding{running("web", 2, weighted)}, quota: share("pods", "1", ""), want: []string{"the share of west of FederatedResourceQuota shop/team is exceeded: pods: 0 of 1 are used, 2 more are asked for"}},
		"the first takes what is left of the quota": {bindings: []workv1alpha2.Binding{running("web", 2, weighted, each("1")), running("api", 2, weighted, each("1"))}, quota: share("cpu", "3", ""), want: []string{"", "the share of west of FederatedResourceQuota shop/team is exceeded: cpu: 0 of 3 are used, 4 more are asked for"}},
		"another cluster's share is used up": {bindings: []workv1alpha2.Binding{running("web", 2, weighted, each("1"))}, quota: func() *policyv1alpha1.FederatedResourceQuota {
			q := share("cpu", "1", "1")
			q.Spec.StaticAssignments[0].ClusterName = "east"
			return q
		}(), want: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			in := drain.Input{Cluster: "east", Clusters: []*clusterv1alpha1.Cluster{cluster("east", 99), cluster("west", 99)}, Seen: tc.seen, Bindings: tc.bindings, Now: noon}
			if tc.quota != nil {
				in.Quotas = []*policyv1alpha1.FederatedResourceQuota{tc.quota}
			}
			var got []string
			for _, row := range drain.Plan(in) {
				got = append(got, row.Lacks)
				if row.State != drain.Leaves {
					t.Errorf("%s: %s %s", row.Title(), row.State, row.Why)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if asked := append(drain.Asks(in), drain.Doubts(in)...); len(asked) == 0 || asked[len(asked)-1] != "west" {
				t.Errorf("the nodes of %v are looked at", asked)
			}
		})
	}
}
