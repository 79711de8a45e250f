package placement_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
)

// cluster returns one that serves Deployments and has capacity for pods pods.
func cluster(name string, pods int64, edits ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
	}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
			corev1.ResourceCPU:  *resource.NewQuantity(pods, resource.DecimalSI),
		},
	}
	for _, e := range edits {
		e(c)
	}
	return c
}

func region(r string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Region = r }
}

func deployment(n int32, p policyv1alpha1.Placement, current ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBindingSpec {
	return &workv1alpha2.ResourceBindingSpec{
		Resource:  workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Replicas:  n,
		Placement: &p,
		Clusters:  current,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{
			ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
		},
	}
}

func divided(preference policyv1alpha1.ReplicaDivisionPreference, weights *policyv1alpha1.ClusterPreferences) *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: preference,
		WeightPreference:          weights,
	}
}

func on(name string, n int32) workv1alpha2.TargetCluster {
	return workv1alpha2.TargetCluster{Name: name, Replicas: n}
}

func TestPlace(t *testing.T) {
	three := []*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 20), cluster("c", 30)}
	dynamic := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
	tiers := policyv1alpha1.Placement{
		ReplicaScheduling: dynamic,
		ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{
			AffinityName:    "own",
			ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}},
			OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{
				{AffinityName: "rented", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
			},
		}},
	}
	cases := map[string]struct {
		clusters []*clusterv1alpha1.Cluster
		req      placement.Request
		opts     placement.Options
		want     []workv1alpha2.TargetCluster
		wantErr  string
	}{
		"a nil placement means every cluster, duplicated": {
			clusters: three,
			req:      placement.Request{Spec: &workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Replicas: 2}},
			want:     []workv1alpha2.TargetCluster{on("a", 2), on("b", 2), on("c", 2)},
		},
		"a resource without replicas gets names only": {
			clusters: three,
			req:      placement.Request{Spec: &workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap"}, Placement: &policyv1alpha1.Placement{ReplicaScheduling: dynamic}}},
			want:     []workv1alpha2.TargetCluster{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		},
		"a cluster that runs it is kept although it no longer lists the API": {
			clusters: []*clusterv1alpha1.Cluster{cluster("a", 1, func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }), cluster("b", 1)},
			req:      placement.Request{Spec: deployment(1, policyv1alpha1.Placement{}, on("a", 1))},
			want:     []workv1alpha2.TargetCluster{on("a", 1), on("b", 1)},
		},
		"no cluster at all says so": {
			req:     placement.Request{Spec: deployment(1, policyv1alpha1.Placement{})},
			wantErr: "0/0 clusters are available: no cluster has joined.",
		},
		"a strategy that nobody knows is an error, not a guess": {
			clusters: three,
			req:      placement.Request{Spec: deployment(1, policyv1alpha1.Placement{ReplicaScheduling: divided("", nil)})},
			wantErr:  `unsupported replica scheduling strategy: type "Divided", division preference ""`,
		},
		"a broken label selector is an error": {
			clusters: three,
			req: placement.Request{Spec: deployment(1, policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
			}})},
			wantErr: `label selector of a cluster affinity: "Near" is not a valid label selector operator`,
		},
		"by zone alone": {
			clusters: []*clusterv1alpha1.Cluster{cluster("a", 1, func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"z"} })},
			req: placement.Request{Spec: deployment(1, policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadByFieldZone, MinGroups: 1, MaxGroups: 1},
			}})},
			want: []workv1alpha2.TargetCluster{on("a", 1)},
		},
		"dynamic weights follow the room, half a core each": {
			clusters: three,
			req:      placement.Request{Spec: deployment(6, policyv1alpha1.Placement{ReplicaScheduling: dynamic})},
			want:     []workv1alpha2.TargetCluster{on("a", 1), on("b", 2), on("c", 3)},
		},
		"scaling down takes from where replicas are": {
			clusters: three,
			req:      placement.Request{Spec: deployment(4, policyv1alpha1.Placement{ReplicaScheduling: dynamic}, on("a", 6), on("b", 2))},
			want:     []workv1alpha2.TargetCluster{on("a", 3), on("b", 1)},
		},
		"the first affinity is filled before its overflow": {
			clusters: three,
			req:      placement.Request{Spec: deployment(14, tiers)},
			want:     []workv1alpha2.TargetCluster{on("a", 10), on("b", 4)},
		},
		"more than both tiers hold cannot be scheduled": {
			clusters: three,
			req:      placement.Request{Spec: deployment(31, tiers)},
			wantErr:  "Clusters available replicas 30 are not enough to schedule.",
		},
		"too few clusters are exchanged for roomier ones": {
			clusters: three,
			req: placement.Request{Spec: deployment(45, policyv1alpha1.Placement{
				ReplicaScheduling: dynamic,
				SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 2}},
			}, on("a", 1))},
			want: []workv1alpha2.TargetCluster{on("b", 18), on("c", 27)},
		},
		"room that no choice of clusters has cannot be scheduled": {
			clusters: three,
			req: placement.Request{Spec: deployment(55, policyv1alpha1.Placement{
				ReplicaScheduling: dynamic,
				SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 2}},
			})},
			wantErr: "no enough resource when selecting 2 clusters: room for 50 of 55 replicas",
		},
		"the roomiest regions are chosen": {
			clusters: []*clusterv1alpha1.Cluster{
				cluster("a1", 1, region("a")), cluster("b1", 9, region("b")), cluster("b2", 9, region("b")), cluster("c1", 9, region("c")),
			},
			req: placement.Request{Spec: deployment(8, policyv1alpha1.Placement{
				ReplicaScheduling: dynamic,
				SpreadConstraints: []policyv1alpha1.SpreadConstraint{
					{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 2, MaxGroups: 2},
					{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2},
				},
			})},
			want: []workv1alpha2.TargetCluster{on("b1", 4), on("c1", 4)},
		},
		"too few regions are an error": {
			clusters: []*clusterv1alpha1.Cluster{cluster("a1", 1, region("a"))},
			req: placement.Request{Spec: deployment(1, policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 2}, {SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1},
			}})},
			wantErr: "spread over 2 regions: only 1 has clusters that fit (a)",
		},
		"chosen clusters without replicas are kept when asked for": {
			clusters: three,
			req:      placement.Request{Spec: deployment(1, policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)})},
			opts:     placement.Options{KeepEmpty: true},
			want:     []workv1alpha2.TargetCluster{on("a", 1), on("b", 0), on("c", 0)},
		},
		"a plugin of one's own refuses": {
			clusters: three,
			req:      placement.Request{Spec: deployment(1, policyv1alpha1.Placement{})},
			opts:     placement.Options{Plugins: append(plugins.All(), noB{})},
			want:     []workv1alpha2.TargetCluster{on("a", 1), on("c", 1)},
		},
		"a plugin that is switched off is not asked": {
			clusters: []*clusterv1alpha1.Cluster{cluster("a", 1, func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil })},
			req:      placement.Request{Spec: deployment(1, policyv1alpha1.Placement{})},
			opts:     placement.Options{Plugins: framework.Select(plugins.All(), []string{"*", "-APIEnablement"})},
			want:     []workv1alpha2.TargetCluster{on("a", 1)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := placement.Place(tc.req, placement.NewSnapshot(tc.clusters), tc.opts)
			if text(err) != tc.wantErr {
				t.Errorf("error = %q, want %q", text(err), tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got.Clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

type noB struct{}

func (noB) Name() string { return "NoB" }

func (noB) Filter(_ *framework.Request, c *framework.Cluster) string {
	if c.Name == "b" {
		return "cluster(s) are b"
	}
	return ""
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrorClasses(t *testing.T) {
	full := divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	_, err := placement.Place(placement.Request{Spec: deployment(9, policyv1alpha1.Placement{ReplicaScheduling: full})},
		placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 1)}), placement.Options{})
	var capacity *placement.UnschedulableError
	if !errors.As(err, &capacity) {
		t.Errorf("lack of room is %T, want *UnschedulableError", err)
	}
	_, err = placement.Place(placement.Request{Spec: deployment(9, policyv1alpha1.Placement{ReplicaScheduling: full, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "nobody", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"}}},
		{AffinityName: "full", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
	}})}, placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 1)}), placement.Options{})
	if !errors.As(err, &capacity) {
		t.Errorf("lack of room in the group that fits is %T, want *UnschedulableError", err)
	}
	_, err = placement.Place(placement.Request{Spec: deployment(9, policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"}}})},
		placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 1), cluster("b", 1)}), placement.Options{})
	var fit *placement.FitError
	if !errors.As(err, &fit) {
		t.Fatalf("no cluster is %T, want *FitError", err)
	}
	want := &placement.FitError{Clusters: 2, Reasons: []placement.Reason{
		{Plugin: "ClusterAffinity", Text: "cluster(s) did not match the placement cluster affinity constraint", Clusters: 2},
	}}
	if diff := cmp.Diff(want, fit); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func binding(spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", Generation: 3,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
		},
		Spec: *spec,
	}
}

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 10)})
	static := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}
	placed := func(edit func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		b := binding(deployment(4, static))
		d, changed := placement.Decide(b, placement.Situation{Clusters: snap, Now: now}, placement.Options{})
		if !changed {
			t.Fatal("a binding without a placement needs one")
		}
		b.Spec.Clusters, b.Annotations = d.Clusters, d.Annotations()
		if edit != nil {
			edit(b)
		}
		return b
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	ok := placement.Record{Reason: "Success", Message: "Binding has been scheduled successfully.", At: at}
	type outcome struct {
		Clusters []workv1alpha2.TargetCluster
		Record   placement.Record
		Why      string
	}
	cases := map[string]struct {
		binding *workv1alpha2.ResourceBinding
		opts    placement.Options
		want    *outcome
	}{
		"a new binding is placed": {
			binding: binding(deployment(4, static)),
			want:    &outcome{[]workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}, ok, placement.DuePlacementChanged},
		},
		"one that is placed is left alone":           {binding: placed(nil)},
		"a binding of another scheduler is not ours": {binding: placed(func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName, b.Spec.Replicas = "mine", 9 })},
		"one that names our scheduler is": {
			binding: placed(func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName, b.Spec.Replicas = "mine", 5 }),
			opts:    placement.Options{SchedulerName: "mine"},
			want:    &outcome{[]workv1alpha2.TargetCluster{on("a", 3), on("b", 2)}, ok, placement.DueReplicasChanged},
		},
		"a suspended one is left alone": {binding: placed(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Replicas, b.Spec.Suspension = 9, &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
		})},
		"one that no policy claims is left alone": {binding: placed(func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas, b.Labels = 9, nil })},
		"one that is being deleted is left alone": {binding: placed(func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas, b.DeletionTimestamp = 9, &at })},
		"an applied placement that cannot be read counts as unchanged": {binding: placed(func(b *workv1alpha2.ResourceBinding) {
			b.Annotations[policyv1alpha1.PolicyPlacementAnnotation] = "{"
		})},
		"a changed placement is decided anew, and nothing written where the outcome is the same but for the record": {
			binding: placed(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}
			}),
			want: &outcome{[]workv1alpha2.TargetCluster{on("b", 4)}, ok, placement.DuePlacementChanged},
		},
		"a target that has gone is replaced": {
			binding: placed(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = []workv1alpha2.TargetCluster{on("gone", 4)}
			}),
			want: &outcome{[]workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}, ok, placement.DueClusterLeaving},
		},
		"a rebalance that changes nothing is answered once": {
			binding: placed(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: at.Add(time.Hour)}
			}),
			want: &outcome{
				[]workv1alpha2.TargetCluster{on("a", 2), on("b", 2)},
				placement.Record{Reason: "Success", Message: ok.Message, At: metav1.NewTime(at.Add(time.Hour))}, placement.DueRebalance,
			},
		},
		"where no cluster fits it stays": {
			binding: placed(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"}}
			}),
			want: &outcome{[]workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}, placement.Record{
				Reason: "NoClusterFit",
				Message: "0/2 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint." +
					" What runs stays where it is until another cluster fits.",
				Cause: "1765cc7efe580cab", At: at, Placed: &at,
			}, placement.DuePlacementChanged},
		},
		"where room lacks it stays": {
			binding: placed(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ReplicaScheduling = divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
				b.Spec.Replicas = 99
			}),
			want: &outcome{[]workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}, placement.Record{
				Reason: "Unschedulable", Message: "Clusters available replicas 20 are not enough to schedule.", Cause: "room", At: at, Placed: &at,
			}, placement.DuePlacementChanged},
		},
		"what cannot be decided stays": {
			binding: placed(func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling = divided("", nil) }),
			want: &outcome{[]workv1alpha2.TargetCluster{on("a", 2), on("b", 2)}, placement.Record{
				Reason: "SchedulerError", Message: `unsupported replica scheduling strategy: type "Divided", division preference ""`, At: at, Placed: &at,
			}, placement.DuePlacementChanged},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, changed := placement.Decide(tc.binding, placement.Situation{Clusters: snap, Now: now}, tc.opts)
			if changed != (tc.want != nil) {
				t.Fatalf("changed = %v: %+v", changed, d)
			}
			if tc.want == nil {
				return
			}
			d.Record.LastMove = nil // see TestTheLastMoveIsKnown
			got := &outcome{d.Clusters, d.Record, d.Why}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			tc.binding.Spec.Clusters = d.Clusters
			for k, v := range d.Annotations() {
				metav1.SetMetaDataAnnotation(&tc.binding.ObjectMeta, k, v)
			}
			if again, changed := placement.Decide(tc.binding, placement.Situation{Clusters: snap, Now: now.Add(time.Hour)}, tc.opts); changed {
				t.Errorf("deciding twice is not deciding once: %+v", again)
			}
		})
	}
}
