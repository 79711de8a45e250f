package drain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// cluster is one that is well and has room for so many pods.
func cluster(name string, pods int64) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
		corev1.ResourceCPU:  *resource.NewQuantity(1000, resource.DecimalSI),
	}}
	return c
}

// divided divides replicas by what is free.
func divided() policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}}
}

// running is a Deployment of so many replicas that was placed in east.
func running(name string, replicas int32, p policyv1alpha1.Placement, edits ...func(*workv1alpha2.ResourceBinding)) workv1alpha2.Binding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name + "-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
	}}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name},
		Replicas: replicas, Placement: &p, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
	}
	placement.Decision{
		Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: replicas}}, AppliedPlacement: placement.AppliedPlacement(&p),
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Message: workv1alpha2.SuccessfulSchedulingMessage, At: metav1.NewTime(noon.Add(-time.Hour))},
	}.Put(b)
	for _, edit := range edits {
		edit(b)
	}
	return b
}

// each has a replica request so much CPU.
func each(cpu string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func tolerating(p policyv1alpha1.Placement, seconds *int64) policyv1alpha1.Placement {
	p.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
	return p
}

// carried names the policy.
func carried(b *workv1alpha2.ResourceBinding) {
	b.Annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation], b.Annotations[policyv1alpha1.PropagationPolicyNameAnnotation] = "shop", "all"
}

// text is the rows as a table, with what is to be done next behind them.
func text(rows []drain.Row) string {
	var out strings.Builder
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&out, "%s %s: %s -> %s", r.State, r.Title(), drain.Place("east", r.Replicas), r.Places())
		if r.Why != "" {
			fmt.Fprintf(&out, " (%s)", r.Why)
		}
		if r.Next != "" {
			fmt.Fprintf(&out, ": %s", r.Next)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// giveUp is the command that lets the old copy of shop/web go.
const giveUp = `flotilla kubectl patch resourcebinding web-deployment -n shop --type json -p ` +
	`'[{"op":"test","path":"/spec/gracefulEvictionTasks/0/fromCluster","value":"east"},{"op":"add","path":"/spec/gracefulEvictionTasks/0/suppressDeletion","value":false}]'`

// TestPlan says what a drain moves where, and what it cannot move.
func TestPlan(t *testing.T) {
	only := divided()
	only.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
	cases := map[string]struct {
		bindings []workv1alpha2.Binding
		capacity int64  // in west
		cpu      string // of the quota of the namespace; none where empty
		want     string
	}{
		"nothing runs there": {want: ""},
		"one goes":           {bindings: []workv1alpha2.Binding{running("web", 2, divided())}, capacity: 9, want: "Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy)\n"},
		"one that may run nowhere else": {bindings: []workv1alpha2.Binding{running("web", 2, only)}, capacity: 9,
			want: "Refused Deployment shop/web: east=2 ->  (no other place: 0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 1 cluster(s) had untolerated taint {cluster.flotilla.io/drain:NoExecute}): give its policy another cluster; what each says: flotilla explain deployment/web -n shop\n"},
		"there is room for the first alone": {bindings: []workv1alpha2.Binding{running("web", 2, divided()), running("api", 2, divided())}, capacity: 3,
			want: "Leaves Deployment shop/api: east=2 -> west=2 (kept until west is healthy)\n" +
				"Refused Deployment shop/web: east=2 ->  (no other place: Clusters available replicas 1 are not enough to schedule): make room for it, or give its policy another cluster; what each says: flotilla explain deployment/web -n shop\n"},
		"its policy tolerates it": {bindings: []workv1alpha2.Binding{running("web", 2, tolerating(divided(), nil), carried)}, capacity: 9,
			want: "Stays Deployment shop/web: east=2 ->  (its policy tolerates the taint cluster.flotilla.io/drain): take that out of clusterTolerations of PropagationPolicy shop/all, or delete Deployment shop/web\n"},
		"its policy tolerates it for a while": {bindings: []workv1alpha2.Binding{running("web", 2, tolerating(divided(), ptr.To[int64](90)))}, capacity: 9,
			want: "Waits Deployment shop/web: east=2 ->  (its policy tolerates the drain until 12:01:30 UTC)\n"},
		"its scheduling is suspended": {bindings: []workv1alpha2.Binding{running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
			b.Labels = map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "p"}
			b.Annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation] = "everywhere"
		})}, capacity: 9, want: "Stays Deployment shop/web: east=2 ->  (its scheduling is suspended): set suspension.scheduling: false in ClusterPropagationPolicy everywhere\n"},
		"another scheduler finds it a place": {bindings: []workv1alpha2.Binding{running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "theirs" })}, capacity: 9,
			want: "Leaves Deployment shop/web: east=2 ->  (kept until another cluster fits)\n"},
		"one is on its way already": {bindings: []workv1alpha2.Binding{running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters[0].Name = "west"
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", Replicas: ptr.To[int32](2), Producer: "Drain", Reason: "TaintUntolerated"}}
		})}, capacity: 9, want: "Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy): see what keeps that from it: flotilla explain deployment/web -n shop; to give the old copy up: " + giveUp + "\n"},
		"a Job that is complete": {bindings: []workv1alpha2.Binding{running("import", 2, divided(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"True"}]}`)}}}
		})}, capacity: 9, want: "Finished Job shop/import: east=2 ->  (it has finished there (Complete), and stays as a record): delete it before east leaves the fleet, or it runs once more elsewhere: flotilla delete job/import -n shop\n"},
		"a quota forbids more than runs, which goes": {bindings: []workv1alpha2.Binding{running("web", 8, divided(), each("1"), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 4 })}, capacity: 9, cpu: "5",
			want: "Leaves Deployment shop/web: east=4 -> west=4 (kept until west is healthy)\n"},
		"a quota that is used up forbids no move": {bindings: []workv1alpha2.Binding{running("web", 4, divided(), each("1"))}, capacity: 9, cpu: "4",
			want: "Leaves Deployment shop/web: east=4 -> west=4 (kept until west is healthy)\n"},
		"what goes first takes of the quota": {bindings: []workv1alpha2.Binding{
			running("api", 4, divided(), each("1"), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 2 }),
			running("web", 4, divided(), each("1"), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 2 }),
		}, capacity: 9, cpu: "6",
			want: "Leaves Deployment shop/api: east=2 -> west=4 (kept until west is healthy)\n" +
				"Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy)\n"},
		"one runs elsewhere": {bindings: []workv1alpha2.Binding{running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Name = "west" })}, capacity: 9},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clusters := []*clusterv1alpha1.Cluster{cluster("east", 9), cluster("west", tc.capacity)}
			in := drain.Input{Cluster: "east", Clusters: clusters, Bindings: tc.bindings, Now: noon}
			if tc.cpu != "" {
				in.Quotas = []*policyv1alpha1.FederatedResourceQuota{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"},
					Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tc.cpu)}},
				}, {
					ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "team"},
					Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}},
				}}
			}
			if diff := cmp.Diff(tc.want, text(drain.Plan(in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(clusters[0].Spec.Taints) > 0 {
				t.Error("the cluster was changed")
			}
			if again := text(drain.Plan(in)); again != tc.want {
				t.Errorf("planned anew it is another plan:\n%s", again)
			}
		})
	}
}

// TestPlanNamesWhatIsNotReady: a cluster that a template runs in already is kept, and gets more, though it is lost. A row
// says so, as the old copy is kept until that one is back and well.
func TestPlanNamesWhatIsNotReady(t *testing.T) {
	west := cluster("west", 9)
	west.Status.Conditions[0].Status, west.Status.Conditions[0].Reason = metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason
	west.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}}
	both := running("web", 2, policyv1alpha1.Placement{}, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: "west", Replicas: 2})
	})
	tolerates := divided()
	tolerates.ClusterTolerations = []corev1.Toleration{{Key: clusterv1alpha1.TaintClusterNotReady, Operator: corev1.TolerationOpExists}}
	for name, tc := range map[string]struct {
		binding workv1alpha2.Binding
		want    string
		unready []string
	}{
		"it runs in both":           {both, "Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy, and west is unreachable since 2026-01-02 12:00 UTC)\n", []string{"west"}},
		"its policy tolerates that": {running("web", 2, tolerates), "Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy, and west is unreachable since 2026-01-02 12:00 UTC)\n", []string{"west"}},
		"it runs in east only": {running("web", 2, divided(), carried),
			"Refused Deployment shop/web: east=2 ->  (no other place: 0/2 clusters are available: 1 cluster(s) had untolerated taint {cluster.flotilla.io/drain:NoExecute}, " +
				"1 cluster(s) had untolerated taint {cluster.karmada.io/not-ready:NoSchedule}): give PropagationPolicy shop/all another cluster; what each says: flotilla explain deployment/web -n shop\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			rows := drain.Plan(drain.Input{Cluster: "east", Clusters: []*clusterv1alpha1.Cluster{cluster("east", 9), west}, Bindings: []workv1alpha2.Binding{tc.binding}, Now: noon})
			if diff := cmp.Diff(tc.want, text(rows)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unready, rows[0].Unready); diff != "" {
				t.Errorf("not ready (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRead says how far a drain is.
func TestRead(t *testing.T) {
	east := cluster("east", 9)
	east.Spec.Taints = drain.Taints()
	east.Spec.Taints[1].TimeAdded = &metav1.Time{Time: noon}
	record := func(b *workv1alpha2.ResourceBinding, r placement.Record) {
		placement.Decision{Clusters: b.Spec.Clusters, Evictions: b.Spec.GracefulEvictionTasks, Record: r}.Put(b)
	}
	gone := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters[0].Name = "west"
		record(b, placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}})
	}
	refused := func(at time.Time) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			record(b, placement.Record{Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "too much", At: metav1.NewTime(at)})
		}
	}
	explain := ": flotilla explain deployment/web -n shop\n"
	cases := map[string]struct {
		edit  func(*workv1alpha2.ResourceBinding)
		after time.Duration
		want  string
	}{
		"nothing is decided yet": {func(*workv1alpha2.ResourceBinding) {}, 0, "Waits Deployment shop/web: east=2 -> \n"},
		"it has left":            {gone, 0, "Left Deployment shop/web: east -> west=2\n"},
		"its copy is there still": {func(b *workv1alpha2.ResourceBinding) {
			gone(b)
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east"}}
		}, 0, "Leaves Deployment shop/web: east -> west=2 (the old copy goes)\n"},
		"its copy is there for others that need it": {func(b *workv1alpha2.ResourceBinding) {
			gone(b)
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east"}}
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}}}
		}, 0, "Left Deployment shop/web: east -> west=2\n"},
		"its copy is kept for what is not healthy": {func(b *workv1alpha2.ResourceBinding) {
			gone(b)
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east"}}
		}, 0, "Leaves Deployment shop/web: east -> west=2 (kept until west is healthy): see what keeps that from it: flotilla explain deployment/web -n shop; to give the old copy up: " + giveUp + "\n"},
		"its kind is another's, too": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Resource.APIVersion = "example.com/v1"
			record(b, placement.Record{Reason: workv1alpha2.BindingReasonSchedulerError, Message: "too much", At: metav1.NewTime(noon.Add(time.Second))})
		}, 0, "Refused Deployment shop/web: east=2 ->  (too much): flotilla explain deployment.example.com/web -n shop\n"},
		"it stays for another cause": {func(b *workv1alpha2.ResourceBinding) {
			record(b, placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Stays: &unplaced.Stays{Message: "It stays in east (untolerated taint {a:NoExecute}): no other place: x", Clusters: []string{"east"}}})
		}, 0, "Waits Deployment shop/web: east=2 -> \n"},
		"another cluster's drain keeps nothing here": {func(b *workv1alpha2.ResourceBinding) {
			record(b, placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Stays: &unplaced.Stays{Message: "It stays in north-east (untolerated taint {cluster.flotilla.io/drain:NoExecute}): no other place: x", Clusters: []string{"north-east"}}})
		}, 0, "Waits Deployment shop/web: east=2 -> \n"},
		"its state cannot be read": {func(b *workv1alpha2.ResourceBinding) {
			record(b, placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Stays: &unplaced.Stays{Message: "It stays in east: its state cannot be carried over: x.", Clusters: []string{"east"}}})
		}, 0, "Refused Deployment shop/web: east=2 ->  (It stays in east: its state cannot be carried over: x)" + explain},
		"it is refused elsewhere": {refused(noon.Add(time.Second)), 0, "Refused Deployment shop/web: east=2 ->  (too much): raise the quota, or ask for less: flotilla get federatedresourcequotas -n shop\n"},
		"it was refused in the second in which the drain began, maybe before that":           {refused(noon), 4 * time.Second, "Waits Deployment shop/web: east=2 -> \n"},
		"it was refused in the second in which the drain began, and nothing else is decided": {refused(noon), 5 * time.Second, "Refused Deployment shop/web: east=2 ->  (too much): raise the quota, or ask for less: flotilla get federatedresourcequotas -n shop\n"},
		"it was refused before that": {refused(noon.Add(-time.Second)), 0, "Waits Deployment shop/web: east=2 -> \n"},
		"its move is refused by a quota that refused more before": {func(b *workv1alpha2.ResourceBinding) {
			record(b, placement.Record{Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "too much", At: metav1.NewTime(noon.Add(-time.Hour)), Stays: &unplaced.Stays{Message: "It stays in east (untolerated taint {cluster.flotilla.io/drain:NoExecute}): its move is refused: too much", Clusters: []string{"east"}}})
		}, 0, "Refused Deployment shop/web: east=2 ->  (too much): raise the quota, or ask for less: flotilla get federatedresourcequotas -n shop\n"},
		"its old copy is kept for ever": {func(b *workv1alpha2.ResourceBinding) {
			gone(b)
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", SuppressDeletion: ptr.To(true)}}
		}, 0, "Stays Deployment shop/web: east -> west=2 (somebody wants the old copy to be kept): " + giveUp + "\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			row, concerned := drain.RowOf(running("web", 2, divided(), tc.edit), east, noon.Add(tc.after))
			if diff := cmp.Diff(tc.want, text([]drain.Row{row})); diff != "" || !concerned {
				t.Errorf("%t (-want +got):\n%s", concerned, diff)
			}
		})
	}
}

// TestADrainTakesNothingOffOthers: whatever runs where, the clusters that stay run at least as much as before. That
// is at once what they are told to run, and no old copy would be there for it.
func TestADrainTakesNothingOffOthers(t *testing.T) {
	names := []string{"east", "north", "south", "west"}
	random := rand.New(rand.NewPCG(1, 2))
	moved := 0
	for range 2000 {
		var clusters []*clusterv1alpha1.Cluster
		p := divided()
		var weights []policyv1alpha1.StaticClusterWeight
		for _, name := range names {
			clusters = append(clusters, cluster(name, 5+random.Int64N(40)))
			weights = append(weights, policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: 1 + random.Int64N(4)})
		}
		switch random.IntN(4) {
		case 0:
			p.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{StaticWeightList: weights}
		case 1:
			p.ReplicaScheduling.ReplicaDivisionPreference, p.ReplicaScheduling.WeightPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil
		case 2:
			p.ReplicaScheduling.WeightPreference = nil
		}
		if random.IntN(3) == 0 {
			p.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1 + random.IntN(3)}}
		}
		b := running("web", 1+random.Int32N(20), p)
		b.BindingSpec().Clusters = nil
		b.SetAnnotations(nil)
		then := clusters[:2+random.IntN(3)] // others joined later
		d, changed := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot(then), Now: noon}, placement.Options{})
		if !changed || d.Err != nil {
			continue
		}
		d.Put(b)
		for _, row := range drain.Plan(drain.Input{Cluster: "east", Clusters: clusters, Bindings: []workv1alpha2.Binding{b}, Now: noon.Add(time.Minute)}) {
			if row.State != drain.Leaves {
				continue
			}
			moved++
			var all int32
			for _, to := range row.To {
				all += to.Replicas
				for _, was := range d.Clusters {
					if was.Name == to.Name && to.Replicas < was.Replicas {
						t.Fatalf("%s has %d, of %d before: %v -> %v", to.Name, to.Replicas, was.Replicas, d.Clusters, row.To)
					}
				}
			}
			if want := b.BindingSpec().Replicas; all != want {
				t.Fatalf("%d of %d replicas: %v -> %v", all, want, d.Clusters, row.To)
			}
		}
	}
	if moved < 500 {
		t.Errorf("only %d were moved", moved)
	}
}

// TestPlanByNodes: what is seen of nodes counts, as it does for the control plane, and what a cluster reports where nothing is.
func TestPlanByNodes(t *testing.T) {
	needs := func(name string, milli int64) workv1alpha2.Binding {
		return running(name, 2, divided(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
		})
	}
	seen := func(free ...int64) map[string]drain.Seen {
		x := &nodes.Index{}
		for i, milli := range free {
			name := fmt.Sprintf("node-%d", i)
			x.Node(name, &nodes.Node{Name: name, Allocatable: nodes.Amounts{{Name: corev1.ResourceCPU, N: milli}, {Name: corev1.ResourcePods, N: 110}}})
		}
		return map[string]drain.Seen{"west": {Index: x}}
	}
	for name, tc := range map[string]struct {
		bindings []workv1alpha2.Binding
		seen     map[string]drain.Seen
		want     string
	}{
		"nothing is seen": {bindings: []workv1alpha2.Binding{needs("web", 500)}, want: "Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy)\n"},
		"no node has as much": {bindings: []workv1alpha2.Binding{needs("web", 500)}, seen: seen(400, 400, 400, 400),
			want: "Refused Deployment shop/web: east=2 ->  (no other place: Clusters available replicas 0 are not enough to schedule): make room for it, or give its policy another cluster; what each says: flotilla explain deployment/web -n shop\n"},
		"the first takes it": {bindings: []workv1alpha2.Binding{needs("web", 500), needs("api", 500)}, seen: seen(900, 900, 900),
			want: "Leaves Deployment shop/api: east=2 -> west=2 (kept until west is healthy)\n" +
				"Refused Deployment shop/web: east=2 ->  (no other place: Clusters available replicas 1 are not enough to schedule): make room for it, or give its policy another cluster; what each says: flotilla explain deployment/web -n shop\n"},
		"what an agent does not tell is not counted": {bindings: []workv1alpha2.Binding{needs("web", 500)},
			seen: map[string]drain.Seen{"west": {Index: seen(100)["west"].Index, Reported: &profile.Profile{QuotasOmitted: true}}},
			want: "Leaves Deployment shop/web: east=2 -> west=2 (kept until west is healthy)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := drain.Input{Cluster: "east", Clusters: []*clusterv1alpha1.Cluster{cluster("east", 9), cluster("west", 9)}, Seen: tc.seen, Bindings: tc.bindings, Now: noon}
			if diff := cmp.Diff([]string{"east", "west"}, drain.Asks(in)); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, text(drain.Plan(in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
