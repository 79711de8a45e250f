package situation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestAClusterThatWasNotThere: everything is healthy, but not divided among all clusters in the policy.
func TestAClusterThatWasNotThere(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := situation.NewSurvey(now, "")
	for _, name := range []string{"east", "west"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady"}}
		s.Cluster(c, time.Time{})
	}
	p := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{{Weight: 1}}},
	}}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}}}
	for _, name := range []string{"one", "two"} {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name + "-deployment",
			Annotations: placement.Decision{AppliedPlacement: placement.AppliedPlacement(p), Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess}}.Annotations(),
		}}
		b.Spec = workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
			Replicas: 2, Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}}, Placement: p,
		}
		propagation.ClaimOf(policy).Set(b)
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
		s.Binding(b, nil)
	}
	want := []situation.Note{{
		Kind: "Deployment", Namespace: "shop", Name: "one",
		Message: "its weights mean west, too, which was not there, or was drained or tainted, when it was divided: nothing moves by itself; the same of 1 more: Deployment shop/two",
		Next:    "flotilla rebalance deployment/one -n shop",
	}}
	if diff := cmp.Diff(want, s.Fleet().Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestWhatADrainHasMoved: once a drain is over, all that it moved is named, with how to bring it back, whatever divides it.
func TestWhatADrainHasMoved(t *testing.T) {
	for name, tc := range map[string]struct {
		draining bool
		lost     bool
		want     []situation.Note
	}{
		"the drain is over": {want: []situation.Note{{Kind: "StatefulSet", Namespace: "shop", Name: "db", Next: "flotilla uncordon west --return",
			Message: "a drain of west moved it off, and is over: it does not go back by itself; the same of 1 more: Deployment shop/web"}}},
		"it goes on":          {draining: true},
		"the cluster is lost": {lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			west := member("west")
			if tc.draining {
				west.Spec.Taints = append(west.Spec.Taints, failover.DrainTaint())
			}
			if tc.lost {
				west.Status.Conditions[0].Status = metav1.ConditionFalse
			}
			s.Cluster(west, time.Time{})
			s.Cluster(member("east"), time.Time{})
			for _, name := range []string{"web", "db", "api"} {
				b := bindingOf(name)
				if name == "db" {
					b.Spec.Resource.Kind = "StatefulSet"
				}
				record := placement.Record{Reason: workv1alpha2.BindingReasonSuccess}
				if name != "api" {
					record.Drained = []string{"west"}
				}
				b.Annotations = placement.Decision{Record: record}.Annotations()
				s.Binding(b, nil)
			}
			notes := slices.DeleteFunc(s.Fleet().Notes, func(n situation.Note) bool { return !strings.Contains(n.Message, "drain of west") })
			if diff := cmp.Diff(tc.want, notes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
