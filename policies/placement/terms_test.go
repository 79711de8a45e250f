package placement_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestWhatBringsBackAnEarlierTerm: what was moved on to a later entry of clusterAffinities, as that of the first was drained,
// stays there by itself, as with Karmada: there it begins with the entry that the status names, and with the first one for a
// WorkloadRebalancer, or where the entry in force is not there any more.
func TestWhatBringsBackAnEarlierTerm(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	of := func(name string, clusters ...string) policyv1alpha1.ClusterAffinityTerm {
		return policyv1alpha1.ClusterAffinityTerm{AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
	}
	terms := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{of("first", "a"), of("second", "b"), of("third", "c")}}
	drained := cluster("a", 9)
	drained.Spec.Taints = append(drained.Spec.Taints, failover.DrainTaint())
	drained.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	edited := func(at int, term policyv1alpha1.ClusterAffinityTerm) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement = b.Spec.Placement.DeepCopy()
			b.Spec.Placement.ClusterAffinities[at] = term
		}
	}
	for name, tc := range map[string]struct {
		does     func(*workv1alpha2.ResourceBinding)
		in, term string
	}{
		"the drain is over":                   {does: func(*workv1alpha2.ResourceBinding) {}, in: "{b:2}", term: "second"},
		"an entry before it is edited":        {does: edited(0, of("first", "a", "c")), in: "{b:2}", term: "second"},
		"the entry in force is edited":        {does: edited(1, of("second", "c")), in: "{c:2}", term: "second"},
		"the entry in force has another name": {does: edited(1, of("other", "b")), in: "{a:2}", term: "first"},
		"a WorkloadRebalancer asks for it anew": {does: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon.Add(time.Minute)}
		}, in: "{a:2}", term: "first"},
	} {
		t.Run(name, func(t *testing.T) {
			b := binding(deployment(2, terms))
			decide := func(a *clusterv1alpha1.Cluster, now time.Time) {
				d, changed := placement.Decide(b, placement.Situation{
					Clusters: placement.NewSnapshot([]*clusterv1alpha1.Cluster{a, cluster("b", 9), cluster("c", 9)}), Now: now,
				}, placement.Options{Failover: failover.Rules{State: true}})
				if changed {
					d.Put(b)
				}
			}
			decide(cluster("a", 9), noon.Add(-time.Minute))
			decide(drained, noon)
			b.Spec.GracefulEvictionTasks = nil // it has left
			if record, _ := placement.RecordOf(b); record.AffinityName != "second" {
				t.Fatalf("it was moved to %v by %q", b.Spec.Clusters, record.AffinityName)
			}
			tc.does(b)
			decide(cluster("a", 9), noon.Add(2*time.Minute))
			record, _ := placement.RecordOf(b)
			if in := placement.Text(b.Spec.Clusters); in != tc.in || record.AffinityName != tc.term {
				t.Errorf("placed in %s by %q; want %s by %q", in, record.AffinityName, tc.in, tc.term)
			}
		})
	}
}
