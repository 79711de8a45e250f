package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestPlansCountRoomAsTheLastDecisionDid: two clusters report that they have room for nine; their nodes had room for one and five
// when four replicas were placed, and now one more is wanted.
func TestPlansCountRoomAsTheLastDecisionDid(t *testing.T) {
	template := func(replicas int) *unstructured.Unstructured {
		return object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {replicas: %d, template: {spec: {containers: [{name: web, image: "web:1"}]}}}}`, replicas))
	}
	in := plan.FleetInput{Interpreter: interpreter.Native(), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	in.Policies = []policyv1alpha1.Policy{carrier("apps/v1", "Deployment", "east", func(s *policyv1alpha1.PropagationSpec) {
		s.Placement.ClusterAffinity.ClusterNames = []string{"east", "west"}
		s.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		}
	})}
	for _, name := range []string{"east", "west"} {
		c := &clusterv1alpha1.Cluster{}
		c.Name = name
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}}
		in.Clusters = append(in.Clusters, c)
	}
	in.Templates = []*unstructured.Unstructured{template(4)}
	propagation.ClaimOf(in.Policies[0]).Set(in.Templates[0])
	b := plan.Fleet(in)[0].Binding.(*workv1alpha2.ResourceBinding)
	b.Spec.Clusters, b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = nil, ""
	room := map[string]estimate.Answer{"east": {Fits: 1}, "west": {Fits: 5}}
	d, _ := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot(in.Clusters), Estimates: room, Now: in.Now}, placement.Options{})
	d.Put(b)
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{
		{time.Minute, "{east:1, west:4}"},
		{time.Hour, "{east:2, west:3}"}, // too long ago: by what they report
	} {
		later := in
		later.Templates, later.Bindings, later.Now = []*unstructured.Unstructured{template(5)}, []workv1alpha2.Binding{b}, in.Now.Add(tc.after)
		propagation.ClaimOf(in.Policies[0]).Set(later.Templates[0])
		p := plan.Fleet(later)[0]
		if diff := cmp.Diff(tc.want, placement.Text(p.Binding.BindingSpec().Clusters)); diff != "" || p.Err != nil {
			t.Errorf("after %s: %v (-want +got):\n%s", tc.after, p.Err, diff)
		}
	}
}

// TestWhatMovesGoesWhereThereIsRoomNow: two clusters had room for five when four replicas were placed, and one is full by now.
func TestWhatMovesGoesWhereThereIsRoomNow(t *testing.T) {
	template := func(replicas int) *unstructured.Unstructured {
		return object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {replicas: %d, template: {spec: {containers: [{name: web, image: "web:1"}]}}}}`, replicas))
	}
	for reserves, want := range map[bool]string{false: "{east:3, west:3}", true: "{east:2, west:4}"} {
		in := plan.FleetInput{Interpreter: interpreter.Native(), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Reserves: reserves}
		in.Policies = []policyv1alpha1.Policy{carrier("apps/v1", "Deployment", "east", func(s *policyv1alpha1.PropagationSpec) {
			s.Placement.ClusterAffinity.ClusterNames = []string{"east", "west"}
			s.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
				WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
			}
		})}
		for name, taken := range map[string]string{"east": "9", "west": "2"} {
			c := &clusterv1alpha1.Cluster{}
			c.Name = name
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
				Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}, Allocated: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(taken)},
			}
			in.Clusters = append(in.Clusters, c)
		}
		in.Templates = []*unstructured.Unstructured{template(4)}
		propagation.ClaimOf(in.Policies[0]).Set(in.Templates[0])
		b := plan.Fleet(in)[0].Binding.(*workv1alpha2.ResourceBinding)
		b.Spec.Clusters, b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = nil, ""
		room := map[string]estimate.Answer{"east": {Fits: 5}, "west": {Fits: 5}}
		d, _ := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot(in.Clusters), Estimates: room, Now: in.Now}, placement.Options{})
		d.Put(b)
		in.Templates, in.Bindings, in.Now = []*unstructured.Unstructured{template(6)}, []workv1alpha2.Binding{b}, in.Now.Add(time.Minute)
		propagation.ClaimOf(in.Policies[0]).Set(in.Templates[0])
		if diff := cmp.Diff(want, placement.Text(plan.Fleet(in)[0].Binding.BindingSpec().Clusters)); diff != "" {
			t.Errorf("reserving %t (-want +got):\n%s", reserves, diff)
		}
	}
}

// TestWhatMovesTakesRoomFromTheNext: two workloads leave a cluster for one that has room for one of them. The one that matters more
// goes, or the first by name; a plan that reserves nothing has both go.
func TestWhatMovesTakesRoomFromTheNext(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: %s}, spec: {replicas: 3, template: {spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1"}}}]}}}}`
	cases := map[string]struct {
		reserves bool
		urgent   string
		want     map[string]string
	}{
		"nothing is reserved":         {false, "", map[string]string{"one": "east", "two": "east"}},
		"the first by name":           {true, "", map[string]string{"one": "east", "two": "west"}},
		"the one with a higher class": {true, "two", map[string]string{"one": "west", "two": "east"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := plan.FleetInput{Interpreter: interpreter.Native(), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Reserves: tc.reserves, Priorities: map[string]int32{"urgent": 7}}
			for name, cpu := range map[string]string{"west": "9", "east": "4"} {
				c := &clusterv1alpha1.Cluster{}
				c.Name = name
				c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}
				c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
				c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("100")}}
				in.Clusters = append(in.Clusters, c)
			}
			for _, name := range []string{"two", "one"} {
				in.Templates = append(in.Templates, object(t, fmt.Sprintf(deployment, name)))
				policy := carrier("apps/v1", "Deployment", "west", func(s *policyv1alpha1.PropagationSpec) {
					s.ResourceSelectors[0].Name = name
					s.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated}
					if name == tc.urgent {
						s.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassName: "urgent"}
					}
				})
				policy.SetName(name)
				in.Policies = append(in.Policies, policy)
			}
			for _, p := range plan.Fleet(in) {
				in.Bindings = append(in.Bindings, p.Binding)
			}
			for _, p := range in.Policies {
				p.PropagationSpec().Placement.ClusterAffinity.ClusterNames = []string{"east"}
			}
			got := map[string]string{}
			for _, p := range plan.Fleet(in) {
				got[p.Resource.Name] = p.Binding.BindingSpec().Clusters[0].Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
