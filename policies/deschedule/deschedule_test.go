package deschedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/deschedule"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/placement"
)

func fleet(names ...string) placement.Snapshot {
	var out []*clusterv1alpha1.Cluster
	for _, name := range names {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "statefulsets", Kind: "StatefulSet"}}}}
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")}}
		out = append(out, c)
	}
	return placement.NewSnapshot(out)
}

func dynamic() *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}
}

// placed is a StatefulSet that was placed so, by the scheduler.
func placed(edit func(*workv1alpha2.ResourceBinding), targets ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-statefulset", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}}}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource:  workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "web"},
		Placement: &policyv1alpha1.Placement{ReplicaScheduling: dynamic()}, Clusters: targets,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
	}
	for _, t := range targets {
		b.Spec.Replicas += t.Replicas
	}
	if edit != nil {
		edit(b)
	}
	d := placement.Decision{
		Clusters: b.Spec.Clusters, Evictions: b.Spec.GracefulEvictionTasks, AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement),
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, At: metav1.NewTime(time.Unix(0, 0))},
	}
	d.Put(b)
	return b
}

func on(cluster string, n int32) workv1alpha2.TargetCluster {
	return workv1alpha2.TargetCluster{Name: cluster, Replicas: n}
}

func says(b *workv1alpha2.ResourceBinding, cluster, status string) {
	b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Status: &runtime.RawExtension{Raw: []byte(status)}})
}

func TestWhereReplicasMayWait(t *testing.T) {
	cases := map[string]struct {
		edit func(*workv1alpha2.ResourceBinding)
		want []deschedule.Short
	}{
		"not all are ready": {edit: func(b *workv1alpha2.ResourceBinding) {
			says(b, "a", `{"replicas":3,"readyReplicas":1}`)
			says(b, "b", `{"replicas":2,"readyReplicas":2}`)
		}, want: []deschedule.Short{{Cluster: "a", Assigned: 3, Ready: 1}}},
		"none are ready, which is left out": {edit: func(b *workv1alpha2.ResourceBinding) {
			says(b, "a", `{"replicas":3}`)
			says(b, "b", `{"readyReplicas":5}`)
		}, want: []deschedule.Short{{Cluster: "a", Assigned: 3}}},
		"a cluster that says nothing, and one that says nonsense": {edit: func(b *workv1alpha2.ResourceBinding) {
			says(b, "b", `[`)
		}, want: []deschedule.Short{{Cluster: "a", Assigned: 3, Ready: -1}, {Cluster: "b", Assigned: 2, Ready: -1}}},
		"a Job that has ended in one of them": {edit: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
			says(b, "a", `{"conditions":[{"type":"Complete","status":"True"}]}`)
			says(b, "b", `{"active":1}`)
		}, want: []deschedule.Short{{Cluster: "b", Assigned: 2, Ready: -1}}},
		"fixed weights": {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling.WeightPreference = nil }},
		"duplicated":    {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling = nil }},
		"more is due":   {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas++ }},
		"of nobody":     {edit: func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }},
		"of another":    {edit: func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "mine" }},
		"of several parts": {edit: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 1}}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, deschedule.Candidates(placed(tc.edit, on("a", 3), on("b", 2)), fleet("a", "b", "c"), "")); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWaitsRunsElsewhere(t *testing.T) {
	waits := func(cluster string, assigned, ready, n int32) deschedule.Waiting {
		return deschedule.Waiting{Short: deschedule.Short{Cluster: cluster, Assigned: assigned, Ready: ready}, Replicas: n}
	}
	room := func(a, b, c int32) map[string]estimate.Answer {
		return map[string]estimate.Answer{"a": {Fits: a}, "b": {Fits: b}, "c": {Fits: c}}
	}
	onOne := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}
	}
	cases := map[string]struct {
		edit    func(*workv1alpha2.ResourceBinding)
		waiting []deschedule.Waiting
		room    map[string]estimate.Answer
		want    string
		message string
	}{
		"there is room elsewhere": {waiting: []deschedule.Waiting{waits("a", 4, 1, 3)}, room: room(9, 9, 0), want: "{a:1, b:7}",
			message: "Binding has been descheduled, 3 replica(s) in cluster(a), 3 total descheduled replica(s)"},
		"there is room for some":                  {waiting: []deschedule.Waiting{waits("a", 4, 1, 3)}, room: room(9, 1, 1), want: "{a:2, b:5, c:1}", message: "Binding has been descheduled, 2 replica(s) in cluster(a), 2 total descheduled replica(s)"},
		"there is room for one":                   {waiting: []deschedule.Waiting{waits("a", 4, 1, 3)}, room: room(9, 0, 1), want: "{a:3, b:4, c:1}", message: "Binding has been descheduled, 1 replica(s) in cluster(a), 1 total descheduled replica(s)"},
		"there is none":                           {waiting: []deschedule.Waiting{waits("a", 4, 1, 3)}, room: room(9, 0, 0)},
		"nothing waits":                           {waiting: []deschedule.Waiting{waits("a", 4, 1, 0)}, room: room(9, 9, 9)},
		"what is ready stays":                     {waiting: []deschedule.Waiting{waits("a", 4, 3, 9)}, room: room(9, 9, 0), want: "{a:3, b:5}", message: "Binding has been descheduled, 1 replica(s) in cluster(a), 1 total descheduled replica(s)"},
		"more is ready than should be":            {waiting: []deschedule.Waiting{waits("a", 4, 9, 1)}, room: room(9, 9, 0), want: "{a:3, b:5}", message: "Binding has been descheduled, 1 replica(s) in cluster(a), 1 total descheduled replica(s)"},
		"a cluster without any is left":           {waiting: []deschedule.Waiting{waits("a", 4, -1, 4)}, room: room(9, 9, 0), want: "{b:8}", message: "Binding has been descheduled, 4 replica(s) in cluster(a), 4 total descheduled replica(s)"},
		"none goes to where others wait":          {waiting: []deschedule.Waiting{waits("a", 4, 2, 2), waits("b", 4, 3, 1)}, room: room(9, 9, 9), want: "{a:2, b:3, c:3}", message: "Binding has been descheduled, 2 replica(s) in cluster(a), 1 replica(s) in cluster(b), 3 total descheduled replica(s)"},
		"all wait everywhere":                     {waiting: []deschedule.Waiting{waits("a", 4, 2, 2), waits("b", 4, 3, 1)}, room: room(9, 9, 0)},
		"a spread constraint would be broken":     {edit: onOne, waiting: []deschedule.Waiting{waits("a", 4, 2, 2)}, room: room(9, 0, 9)},
		"a spread constraint that is not touched": {edit: onOne, waiting: []deschedule.Waiting{waits("a", 4, 2, 2)}, room: room(9, 9, 9), want: "{a:2, b:6}", message: "Binding has been descheduled, 2 replica(s) in cluster(a), 2 total descheduled replica(s)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := placed(tc.edit, on("a", 4), on("b", 4))
			before := b.DeepCopy()
			move, some := deschedule.Decide(b, placement.Situation{Clusters: fleet("a", "b", "c"), Estimates: tc.room, Now: time.Unix(9, 0)}, placement.Options{}, tc.waiting)
			if diff := cmp.Diff(before, b); diff != "" {
				t.Errorf("the binding was changed (-want +got):\n%s", diff)
			}
			if !some {
				if tc.want != "" {
					t.Errorf("nothing is moved, want %s", tc.want)
				}
				return
			}
			if got := placement.Text(move.Clusters); got != tc.want || move.Message(time.Minute) != tc.message+": they found no node for 60s or longer; it runs in "+tc.want+" instead" {
				t.Errorf("moved to %s, want %s; it says %q", got, tc.want, move.Message(time.Minute))
			}
			move.Put(b)
			if why, due := placement.Due(b, fleet("a", "b", "c")); due {
				t.Errorf("once it is written another decision is due: %s", why)
			}
		})
	}
}

// TestAMoveIsRecorded: where replicas came from is known afterwards, unless the old copies of another move are still to go.
func TestAMoveIsRecorded(t *testing.T) {
	failed := eviction.Move{From: []string{"c"}, To: []string{"a"}, Why: "it failed", At: metav1.NewTime(time.Unix(3, 0))}
	going := []workv1alpha2.GracefulEvictionTask{{FromCluster: "c"}}
	for name, tc := range map[string]struct {
		last  *eviction.Move
		tasks []workv1alpha2.GracefulEvictionTask
		ready int32
		want  string
	}{
		"some of them":                       {ready: 3, want: "1 replica from a to b at 1970-01-01 00:00:09 UTC: found no node there"},
		"all of them":                        {ready: 0, want: "4 replicas from a to b at 1970-01-01 00:00:09 UTC: found no node there"},
		"after another move":                 {last: &failed, ready: 3, want: "1 replica from a to b at 1970-01-01 00:00:09 UTC: found no node there"},
		"while the old copy of one is to go": {last: &failed, tasks: going, ready: 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := placed(nil, on("a", 4), on("b", 4))
			record, _ := placement.RecordOf(b)
			record.LastMove, b.Spec.GracefulEvictionTasks = tc.last, tc.tasks
			placement.Decision{Clusters: b.Spec.Clusters, Evictions: tc.tasks, Record: record, AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement)}.Put(b)
			waiting := []deschedule.Waiting{{Short: deschedule.Short{Cluster: "a", Assigned: 4, Ready: tc.ready}, Replicas: 4}}
			in := placement.Situation{Clusters: fleet("a", "b"), Estimates: map[string]estimate.Answer{"a": {Fits: 9}, "b": {Fits: 9}}, Now: time.Unix(9, 0)}
			move, some := deschedule.Decide(b, in, placement.Options{}, waiting)
			if !some {
				t.Fatal("nothing is moved")
			}
			move.Put(b)
			after, _ := placement.RecordOf(b)
			if got := after.LastMove.Past(b.Spec.GracefulEvictionTasks, time.Time{}); got != tc.want {
				t.Errorf("reads %q, want %q", got, tc.want)
			}
			if got := after.At.Unix(); got != 9 {
				t.Errorf("decided at %d s, moved at 9", got)
			}
			if tc.want == "" && after.LastMove.Why != failed.Why {
				t.Errorf("recorded is %+v", after.LastMove)
			}
		})
	}
}

// TestReplicasAreNeitherLostNorMade moves at random.
func TestReplicasAreNeitherLostNorMade(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	moved := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		var targets []workv1alpha2.TargetCluster
		var waiting []deschedule.Waiting
		room := map[string]estimate.Answer{}
		kept := map[string]int32{}
		for _, name := range names {
			room[name] = estimate.Answer{Fits: r.Int32N(4)}
			if r.IntN(4) == 0 {
				continue
			}
			n := 1 + r.Int32N(5)
			targets = append(targets, on(name, n))
			ready := r.Int32N(n + 1)
			kept[name] = n
			if w := r.Int32N(n + 2); r.IntN(2) == 0 {
				waiting = append(waiting, deschedule.Waiting{Short: deschedule.Short{Cluster: name, Assigned: n, Ready: ready}, Replicas: w})
				kept[name] = max(n-w, ready)
			}
		}
		if len(targets) == 0 {
			continue
		}
		b := placed(nil, targets...)
		move, some := deschedule.Decide(b, placement.Situation{Clusters: fleet(names...), Estimates: room, Now: time.Unix(9, 0)}, placement.Options{}, waiting)
		if !some {
			continue
		}
		moved++
		sum, there := int32(0), map[string]int32{}
		for _, t := range move.Clusters {
			sum, there[t.Name] = sum+t.Replicas, t.Replicas
		}
		wrong := ""
		for _, target := range targets {
			if there[target.Name] < kept[target.Name] {
				wrong = fmt.Sprintf("%s has less than the %d that do not wait there", target.Name, kept[target.Name])
			}
		}
		for _, name := range names {
			had := int32(0)
			for _, target := range targets {
				if target.Name == name {
					had = target.Replicas
				}
			}
			if there[name]-had > room[name].Fits {
				wrong = name + " gets more than fits"
			}
		}
		if sum != b.Spec.Replicas || wrong != "" {
			t.Fatalf("seed %d: %s becomes %s: %s", seed, placement.Text(targets), placement.Text(move.Clusters), wrong)
		}
	}
	if moved < 100 {
		t.Errorf("only %d of 2000 moved anything", moved)
	}
}
