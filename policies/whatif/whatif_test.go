package whatif_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/whatif"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// cluster is one that is well since an hour and has room for so many pods.
func cluster(name string, pods int64) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI), corev1.ResourceCPU: *resource.NewQuantity(1000, resource.DecimalSI),
	}}
	return c
}

// web is a Deployment with three replicas in each of some clusters that goes where there is room.
func web(clusters ...string) workv1alpha2.Binding {
	p := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}}}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Replicas: 3 * int32(len(clusters)), Placement: p, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
	}
	var runs []workv1alpha2.TargetCluster
	for _, name := range clusters {
		runs = append(runs, workv1alpha2.TargetCluster{Name: name, Replicas: 3})
	}
	placement.Decision{
		Clusters: runs, AppliedPlacement: placement.AppliedPlacement(p),
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, At: metav1.NewTime(noon.Add(-time.Hour))},
	}.Put(b)
	return b
}

// whenLost taints clusters that are not ready, as the control plane's own policy does.
func whenLost() []policyv1alpha1.ClusterTaintPolicy {
	return []policyv1alpha1.ClusterTaintPolicy{{Spec: policyv1alpha1.ClusterTaintPolicySpec{
		AddOnConditions: []policyv1alpha1.MatchCondition{{
			ConditionType: clusterv1alpha1.ClusterConditionReady, Operator: policyv1alpha1.MatchConditionOpNotIn, StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue},
		}},
		Taints: []policyv1alpha1.Taint{{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute}},
	}}}
}

// TestDecisionsOfWhatIsNot has the scheduler decide about clusters as they would be.
func TestDecisionsOfWhatIsNot(t *testing.T) {
	long := noon.Add(-10 * time.Minute)
	east, west, north := cluster("east", 9), cluster("west", 9), cluster("north", 9)
	cases := map[string]struct {
		clusters []*clusterv1alpha1.Cluster
		want     string
	}{
		"as it is":                     {[]*clusterv1alpha1.Cluster{east, west}, "east=3 west=3"},
		"west is down since long":      {[]*clusterv1alpha1.Cluster{east, whatif.Down(west, whenLost(), long)}, "east=6, leaves west"},
		"west is down since now":       {[]*clusterv1alpha1.Cluster{east, whatif.Down(west, whenLost(), noon)}, "east=3 west=3"},
		"it is, and no policy minds":   {[]*clusterv1alpha1.Cluster{east, whatif.Down(west, nil, long)}, "east=3 west=3"},
		"it is, and others are full":   {[]*clusterv1alpha1.Cluster{cluster("east", 1), whatif.Down(west, whenLost(), long)}, "east=3 west=3"},
		"all are down":                 {[]*clusterv1alpha1.Cluster{whatif.Down(east, whenLost(), long), whatif.Down(west, whenLost(), long), north}, "east=3 west=3"},
		"west is drained":              {[]*clusterv1alpha1.Cluster{east, whatif.Tainted(west, noon, drain.Taints()...)}, "east=6, leaves west"},
		"north joins and west is down": {[]*clusterv1alpha1.Cluster{east, whatif.Down(west, whenLost(), long), north}, "east=5 north=1, leaves west"},
	}
	opts := placement.Options{Failover: failover.Rules{Taints: true, Tolerance: 5 * time.Minute, Breaker: failover.Breaker{Share: 1.0 / 3, Window: 10 * time.Minute}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := web("east", "west")
			decision, changed := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot(tc.clusters), Now: noon}, opts)
			if changed {
				decision.Put(b)
			}
			if diff := cmp.Diff(tc.want, places(b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]*clusterv1alpha1.Cluster{cluster("east", 9), cluster("west", 9)}, []*clusterv1alpha1.Cluster{east, west}); diff != "" {
		t.Errorf("the clusters were changed (-want +got):\n%s", diff)
	}
}

// places is where a binding runs and what it leaves.
func places(b workv1alpha2.Binding) string {
	var runs, leaves []string
	for _, t := range b.BindingSpec().Clusters {
		runs = append(runs, fmt.Sprintf("%s=%d", t.Name, t.Replicas))
	}
	for _, task := range b.BindingSpec().GracefulEvictionTasks {
		leaves = append(leaves, ", leaves "+task.FromCluster)
	}
	return strings.Join(runs, " ") + strings.Join(leaves, "")
}

// TestTainted adds the taints that a cluster has not.
func TestTainted(t *testing.T) {
	c := cluster("east", 9)
	c.Spec.Taints = []corev1.Taint{{Key: "edge", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	at := metav1.NewTime(noon)
	want := cluster("east", 9)
	want.ResourceVersion = ""
	want.Spec.Taints = []corev1.Taint{{Key: "edge", Value: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "edge", Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}}
	got := whatif.Tainted(c, noon, corev1.Taint{Key: "edge", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "edge", Effect: corev1.TaintEffectNoExecute})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ptr.Deref(got.Spec.Taints[1].TimeAdded, metav1.Time{}) != at || len(c.Spec.Taints) != 1 {
		t.Error("the cluster itself was changed")
	}
}

// TestALostClusterGetsNoMore moves what runs in a cluster whose loss is confirmed while another one does not answer
// either: that keeps what it has, and what it would get more would run nowhere.
func TestALostClusterGetsNoMore(t *testing.T) {
	lost := whatif.Down(cluster("west", 9), whenLost(), noon.Add(-10*time.Minute))
	lost.Annotations = map[string]string{clusterv1alpha1.ConfirmLostAnnotation: noon.Format(time.RFC3339)}
	silent := whatif.Down(cluster("north", 99), whenLost(), noon.Add(-10*time.Minute))
	opts := placement.Options{Failover: failover.Rules{Taints: true, Tolerance: 5 * time.Minute, Breaker: failover.Breaker{Window: 10 * time.Minute}}}
	cases := map[string]struct {
		room int64 // in the east
		want string
	}{
		"the one that is well has room":  {9, "east=6 north=3, leaves west"},
		"it has not: west keeps its own": {2, "east=3 north=3 west=3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := web("east", "north", "west")
			snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("east", tc.room), silent, lost})
			if d, changed := placement.Decide(b, placement.Situation{Clusters: snap, Now: noon}, opts); changed {
				d.Put(b)
			}
			if diff := cmp.Diff(tc.want, places(b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
