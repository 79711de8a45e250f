package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

func TestPassedOver(t *testing.T) {
	fleet := func(taints map[string]corev1.Taint) placement.Snapshot {
		var clusters []*clusterv1alpha1.Cluster
		for _, name := range []string{"east", "west"} {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
			if taint, ok := taints[name]; ok {
				c.Spec.Taints = []corev1.Taint{taint}
			}
			clusters = append(clusters, c)
		}
		return placement.NewSnapshot(clusters)
	}
	weigh := func(name string, weight int64) policyv1alpha1.StaticClusterWeight {
		return policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: weight}
	}
	divided := func(weights ...policyv1alpha1.StaticClusterWeight) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: weights},
		}}
	}
	// bound is a binding that is placed in east alone, as its placement was decided.
	bound := func(p *policyv1alpha1.Placement, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
			Annotations: placement.Decision{AppliedPlacement: placement.AppliedPlacement(p), Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess}}.Annotations(),
		}}
		b.Spec = workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
			Replicas: 2, Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}}, Placement: p,
		}
		for _, c := range change {
			c(b)
		}
		return b
	}
	both := divided(weigh("east", 1), weigh("west", 1))
	for name, tc := range map[string]struct {
		b    *workv1alpha2.ResourceBinding
		away map[string]corev1.Taint
		want []string
	}{
		"a cluster has come": {b: bound(both), want: []string{"west"}},
		"it is away":         {b: bound(both), away: map[string]corev1.Taint{"west": {Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}}},
		"all weigh the same": {b: bound(&policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		}}), want: []string{"west"}},
		"it weighs too little": {b: bound(divided(weigh("east", 100), weigh("west", 1)))},
		"it weighs nothing":    {b: bound(divided(weigh("east", 1)))},
		"it runs there": {b: bound(both, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east", Replicas: 1}, {Name: "west", Replicas: 1}}
		})},
		"it is about to be divided anew": {b: bound(both, func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 3 })},
		"what is free decides":           {b: bound(&policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}})},
		"it runs nowhere":                {b: bound(both, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })},
		"nobody carries it":              {b: bound(both, func(b *workv1alpha2.ResourceBinding) { b.Labels = nil })},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, placement.PassedOver(tc.b, fleet(tc.away))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
