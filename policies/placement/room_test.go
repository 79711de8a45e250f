package placement_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement"
)

func dynamicWeight() *policyv1alpha1.ReplicaSchedulingStrategy {
	return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
}

func oneCluster() []policyv1alpha1.SpreadConstraint {
	return []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
}

// TestWhoSeesNodesOverrulesWhatIsReported divides 6 replicas between clusters that report
// room for 10 each.
func TestWhoSeesNodesOverrulesWhatIsReported(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 10)})
	cases := map[string]struct {
		room map[string]estimate.Answer
		opts placement.Options
		want string
	}{
		"nobody was asked":                   {want: "{a:3, b:3}"},
		"less fits than it reports":          {room: map[string]estimate.Answer{"a": {Fits: 0}, "b": {Fits: 9}}, want: "{b:6}"},
		"more fits than it reports":          {room: map[string]estimate.Answer{"a": {Fits: 100}}, want: "{a:5, b:1}"},
		"no bound leaves what it reports":    {room: map[string]estimate.Answer{"a": {Fits: math.MaxInt32}}, want: "{a:3, b:3}"},
		"the least of both, if that is said": {room: map[string]estimate.Answer{"a": {Fits: 100}, "b": {Fits: 5}}, opts: placement.Options{LeastCapacity: true}, want: "{a:4, b:2}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := placement.Request{Spec: deployment(6, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}), Estimates: tc.room}
			got, err := placement.Place(req, snap, tc.opts)
			if err != nil || placement.Text(got.Clusters) != tc.want {
				t.Errorf("placed %s (%v), want %s", placement.Text(got.Clusters), err, tc.want)
			}
		})
	}
}

// TestReasonsWhereRoomLacks holds the reasons that clients of Karmada's compare.
func TestReasonsWhereRoomLacks(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10)})
	aggregated := divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	cases := map[string]struct {
		spec   *workv1alpha2.ResourceBindingSpec
		room   map[string]estimate.Answer
		reason string
		text   string
	}{
		"dynamic weight, by what is reported": {spec: deployment(99, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}), reason: "Unschedulable", text: "Clusters available replicas 10 are not enough to schedule."},
		"dynamic weight, by its nodes":        {spec: deployment(2, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}), room: map[string]estimate.Answer{"a": {Fits: 1}}, reason: "Unschedulable", text: "Clusters available replicas 1 are not enough to schedule."},
		"aggregated on one cluster":           {spec: deployment(2, policyv1alpha1.Placement{ReplicaScheduling: aggregated, SpreadConstraints: oneCluster()}), room: map[string]estimate.Answer{"a": {Fits: 1}}, reason: "SchedulerError", text: "no enough resource"},
		"components on one cluster":           {spec: flink(2, "1", policyv1alpha1.Placement{ReplicaScheduling: aggregated, SpreadConstraints: oneCluster()}), room: map[string]estimate.Answer{"a": {Fits: 0}}, reason: "SchedulerError", text: "no enough resource"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := placement.Situation{Clusters: snap, Estimates: tc.room, Now: time.Unix(0, 0)}
			d, changed := placement.Decide(binding(tc.spec), in, placement.Options{})
			if !changed || d.Record.Reason != tc.reason || !strings.Contains(d.Record.Message, tc.text) || len(d.Clusters) != 0 || !d.Record.LacksCapacity() {
				t.Errorf("decided %s %q %v (lacks room: %t), want %s %q", d.Record.Reason, d.Record.Message, d.Clusters, d.Record.LacksCapacity(), tc.reason, tc.text)
			}
		})
	}
}

// TestOldAnswersAreMarked has a cluster that does not say what fits there.
func TestOldAnswersAreMarked(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 10)})
	in := placement.Situation{Clusters: snap, Estimates: map[string]estimate.Answer{"a": {Fits: 2, Age: 90 * time.Second}, "b": {Fits: 2}}, Now: time.Unix(0, 0)}
	b := binding(deployment(4, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}))
	d, _ := placement.Decide(b, in, placement.Options{})
	want := []estimate.Stale{{Cluster: "a", Fits: 2, Age: "1m30s"}}
	if diff := cmp.Diff(want, d.Record.Stale); diff != "" || placement.Text(d.Clusters) != "{a:2, b:2}" {
		t.Errorf("placed %s; stale (-want +got):\n%s", placement.Text(d.Clusters), diff)
	}
	d.Put(b)
	if got, _ := placement.RecordOf(b); !cmp.Equal(got.Stale, want) {
		t.Errorf("the record says %v", got.Stale)
	}
	in.Estimates["a"] = estimate.Answer{Fits: 2, Age: time.Hour}
	if _, changed := placement.Decide(b, in, placement.Options{}); changed {
		t.Error("an older answer alone is news")
	}
}

// TestWhoIsAsked names the clusters whose room counts.
func TestWhoIsAsked(t *testing.T) {
	leaving := metav1.NewTime(time.Unix(1, 0))
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 10), cluster("c", 10, func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &leaving })})
	of := func(names ...string) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	placed := func(spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBinding {
		b := binding(spec)
		d, _ := placement.Decide(b, placement.Situation{Clusters: snap, Now: time.Unix(0, 0)}, placement.Options{})
		d.Put(b)
		return b
	}
	dynamic := policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}
	terms := policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight(), ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "one", ClusterAffinity: *of("b")}, {AffinityName: "two", ClusterAffinity: *of("a")}}}
	cases := map[string]struct {
		b    *workv1alpha2.ResourceBinding
		want []string
	}{
		"dynamic weight":           {b: binding(deployment(2, dynamic)), want: []string{"a", "b"}},
		"those that it means":      {b: binding(deployment(2, policyv1alpha1.Placement{ClusterAffinity: of("b"), ReplicaScheduling: dynamicWeight()})), want: []string{"b"}},
		"of every term":            {b: binding(deployment(2, terms)), want: []string{"a", "b"}},
		"a spread constraint":      {b: binding(deployment(2, policyv1alpha1.Placement{SpreadConstraints: oneCluster(), ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)})), want: []string{"a", "b"}},
		"nothing is due":           {b: placed(deployment(2, dynamic))},
		"fixed weights":            {b: binding(deployment(2, policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}))},
		"duplicated":               {b: binding(deployment(2, policyv1alpha1.Placement{}))},
		"of no policy":             {b: &workv1alpha2.ResourceBinding{Spec: *deployment(2, dynamic)}},
		"what failed is due again": {b: placed(deployment(99, dynamic)), want: []string{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, placement.Asks(tc.b, placement.Situation{Clusters: snap, Now: time.Unix(0, 0)}, placement.Options{})); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWasAnsweredIsRecalled: who cannot ask clusters counts as the decision did, until somebody asks for something else.
func TestWhatWasAnsweredIsRecalled(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 10)})
	decided := time.Unix(1000, 0)
	dynamic := policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}
	stored := binding(deployment(4, dynamic))
	d, _ := placement.Decide(stored, placement.Situation{Clusters: snap, Estimates: map[string]estimate.Answer{"a": {Fits: 1}, "b": {Fits: 5}}, Now: decided}, placement.Options{})
	d.Put(stored)
	if got := placement.Text(stored.Spec.Clusters); got != "{a:1, b:3}" {
		t.Fatalf("placed %s", got)
	}
	cases := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		after  time.Duration
		want   map[string]int32 // what fits besides
	}{
		"nothing has changed":          {after: time.Hour, want: map[string]int32{"a": 0, "b": 2}},
		"one more is wanted":           {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 5 }, after: time.Minute, want: map[string]int32{"a": 0, "b": 2}},
		"one more is wanted, later":    {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 5 }, after: time.Hour},
		"its pods need something else": {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.ReplicaRequirements = nil }, after: time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wanted := stored.DeepCopy()
			if tc.change != nil {
				tc.change(wanted)
			}
			var got map[string]int32
			for cluster, a := range placement.Recalled(stored, wanted, snap, decided.Add(tc.after)) {
				if got == nil {
					got = map[string]int32{}
				}
				if got[cluster] = a.Fits; a.Age != tc.after {
					t.Errorf("it is %s old", a.Age)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := placement.Recalled(nil, stored, snap, decided); got != nil {
		t.Errorf("nothing is stored, and counts: %v", got)
	}
}
