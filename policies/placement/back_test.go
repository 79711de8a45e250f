package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
)

// oneOf is a placement in one cluster.
func oneOf() policyv1alpha1.Placement {
	return policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
}

// TestFailBack: what was moved off a cluster that failed returns when that has been well for as long as its policy
// says, to that cluster and no other, and does not where the policy says nothing.
func TestFailBack(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	// A look is at so many seconds after noon, when these clusters have a taint that moves what is there, for a minute or,
	// with a +, as of now.
	type step struct {
		at      int
		tainted string
		// want is where it runs then, and returns since which second each cluster that it may return to
		// has been well, -1 for one that is not.
		want    string
		returns map[string]int
		// next is when to look again, in seconds after noon; 0 for when something changes.
		next int
	}
	briefly := oneOf()
	briefly.ClusterTolerations = []corev1.Toleration{{Key: "drill", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}}
	cases := map[string]struct {
		placement policyv1alpha1.Placement
		after     *int32
		was       string
		moves     int // how often it was moved before because it failed
		looks     []step
	}{
		"after a while": {oneOf(), ptr.To[int32](60), "b:2", 0, []step{
			{0, "b", "c:2", map[string]int{"b": -1}, 0},
			{9, "b", "c:2", map[string]int{"b": -1}, 0},
			{10, "", "c:2", map[string]int{"b": 10}, 70},
			{30, "", "c:2", map[string]int{"b": 10}, 70},
			{70, "", "b:2", nil, 0},
			{80, "", "b:2", nil, 0},
		}},
		"not while it comes and goes": {oneOf(), ptr.To[int32](60), "b:2", 0, []step{
			{0, "b", "c:2", map[string]int{"b": -1}, 0},
			{10, "", "c:2", map[string]int{"b": 10}, 70},
			{60, "b", "c:2", map[string]int{"b": -1}, 0},
			{65, "", "c:2", map[string]int{"b": 65}, 125},
			{70, "", "c:2", map[string]int{"b": 65}, 125},
			{125, "", "b:2", nil, 0},
		}},
		"at once": {oneOf(), ptr.To[int32](0), "b:2", 0, []step{
			{0, "b", "c:2", map[string]int{"b": -1}, 0},
			{10, "", "b:2", nil, 0},
		}},
		"never, as nobody says when": {oneOf(), nil, "b:2", 0, []step{
			{0, "b", "c:2", nil, 0},
			{9999, "", "c:2", nil, 0},
		}},
		"twice as long for one that failed again": {oneOf(), ptr.To[int32](60), "b:2", 2, []step{
			{0, "b", "c:2", map[string]int{"b": -1}, 0},
			{10, "", "c:2", map[string]int{"b": 10}, 130},
			{70, "", "c:2", map[string]int{"b": 10}, 130},
			{130, "", "b:2", nil, 0},
		}},
		"moved on meanwhile": {oneOf(), ptr.To[int32](60), "b:2", 0, []step{
			{0, "b", "c:2", map[string]int{"b": -1}, 0},
			{10, "b c", "a:2", map[string]int{"b": -1, "c": -1}, 0},
			{20, "b", "a:2", map[string]int{"b": -1, "c": 20}, 80},
			{50, "", "a:2", map[string]int{"b": 50, "c": 20}, 80},
			{80, "", "c:2", map[string]int{"b": 50}, 110},
			{110, "", "b:2", nil, 0},
		}},
		"not to one that is tolerated for a while only": {briefly, ptr.To[int32](60), "b:2", 0, []step{
			{0, "b", "c:2", map[string]int{"b": -1}, 0},
			{10, "", "c:2", map[string]int{"b": 10}, 70},
			{20, "+b", "c:2", map[string]int{"b": -1}, 50},
			{90, "", "c:2", map[string]int{"b": 90}, 150},
		}},
		"to a cluster that has left the fleet": {oneOf(), ptr.To[int32](60), "x:2", 0, []step{
			{0, "x", "c:2", map[string]int{"x": -1}, 0},
			{10, "-x", "c:2", nil, 0},
		}},
		"what is divided": {policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)}, ptr.To[int32](60), "a:1 b:1 c:1", 0, []step{
			{0, "b", "a:2 c:1", map[string]int{"b": -1}, 0},
			{10, "", "a:2 c:1", map[string]int{"b": 10}, 70},
			{70, "", "a:1 b:1 c:1", nil, 0},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var replicas int32
			for _, target := range targets(tc.was) {
				replicas += target.Replicas
			}
			b := binding(deployment(replicas, tc.placement))
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{FailBackSeconds: tc.after}
			d := placement.Decision{
				Clusters: targets(tc.was), AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement),
				Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Message: workv1alpha2.SuccessfulSchedulingMessage, At: metav1.NewTime(noon.Add(-time.Hour))},
			}
			if tc.moves > 0 {
				d.Record.Moves = &failover.Moves{Count: tc.moves, At: metav1.NewTime(noon)}
			}
			d.Put(b)
			for _, look := range tc.looks {
				now := noon.Add(time.Duration(look.at) * time.Second)
				rooms := "a:9 b:9 c:20"
				if look.tainted == "x" {
					rooms += " x:9"
				}
				since := now.Add(-time.Minute)
				if strings.HasPrefix(look.tainted, "+") {
					since = now
				}
				in := placement.Situation{Clusters: evictFleet(rooms, look.tainted, since), Now: now}
				opts := placement.Options{Failover: failover.Rules{Taints: true}}
				d, changed := placement.Decide(b, in, opts)
				if changed {
					d.Put(b)
					b.Spec.GracefulEvictionTasks = nil // the old copy is gone by the next look
				}
				if d, changed := placement.Decide(b, in, opts); changed {
					t.Fatalf("after %d s it is decided twice: %+v", look.at, d)
				}
				record, _ := placement.RecordOf(b)
				var returns map[string]int
				for _, left := range record.Left {
					if returns == nil {
						returns = map[string]int{}
					}
					returns[left.Cluster] = -1
					if left.Well != nil {
						returns[left.Cluster] = int(left.Well.Sub(noon) / time.Second)
					}
				}
				next := 0
				if !d.Next.IsZero() {
					next = int(d.Next.Sub(noon) / time.Second)
				}
				if diff := cmp.Diff(look.want, spaced(b.Spec.Clusters)); diff != "" {
					t.Fatalf("after %d s (-want +got):\n%s", look.at, diff)
				}
				if diff := cmp.Diff(look.returns, returns); diff != "" {
					t.Fatalf("after %d s, returns (-want +got):\n%s", look.at, diff)
				}
				if next != look.next {
					t.Fatalf("after %d s, next in %d s, want %d", look.at, next, look.next)
				}
			}
		})
	}
}

// TestFailBackWithinRoom: what returns takes nothing off others for what finds no place where it came from, and is not tried again.
func TestFailBackWithinRoom(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	fixed := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{StaticWeightList: weights("a:1 b:2")})}
	for name, tc := range map[string]struct {
		placement policyv1alpha1.Placement
		was, mid  string
		room      map[string]int32 // what fits besides, by the nodes
		kept      bool             // the old copy is still there
		want      string
	}{
		"by fixed weights, and its nodes are cordoned":      {fixed, "a:2 b:4", "a:6", map[string]int32{"a": 9, "b": 0}, false, "a:6"},
		"by fixed weights, and there is room for some":      {fixed, "a:2 b:4", "a:6", map[string]int32{"a": 9, "b": 3}, false, "a:6"},
		"by fixed weights, and there is room":               {fixed, "a:2 b:4", "a:6", map[string]int32{"a": 0, "b": 4}, false, "a:2 b:4"},
		"by fixed weights, and its old copy takes the room": {fixed, "a:2 b:4", "a:6", map[string]int32{"a": 0, "b": 0}, true, "a:2 b:4"},
		"as a whole, and its nodes are cordoned":            {oneOf(), "b:2", "a:2", map[string]int32{"a": 9, "b": 0}, false, "a:2"},
		"as a whole, and there is room":                     {oneOf(), "b:2", "a:2", map[string]int32{"a": 9, "b": 2}, false, "b:2"},
		"as a whole, and its old copy takes the room":       {oneOf(), "b:2", "a:2", map[string]int32{"a": 9, "b": 0}, true, "b:2"},
		"by room, and its nodes are cordoned":               {policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}, "a:2 b:2", "a:4", map[string]int32{"a": 9, "b": 0}, false, "a:4"},
	} {
		t.Run(name, func(t *testing.T) {
			var replicas int32
			for _, target := range targets(tc.was) {
				replicas += target.Replicas
			}
			b := placedOn(t, deployment(replicas, tc.placement), "a:9 b:9", tc.was, noon)
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{FailBackSeconds: ptr.To[int32](0)}
			opts := placement.Options{Failover: failover.Rules{Taints: true}}
			in := placement.Situation{Clusters: evictFleet("a:9 b:9", "b", noon), Now: noon.Add(time.Second)}
			look := func(want string) {
				t.Helper()
				if d, changed := placement.Decide(b, in, opts); changed {
					d.Put(b)
				}
				if got := spaced(b.Spec.Clusters); got != want {
					t.Fatalf("it runs in %s, want %s", got, want)
				}
				if d, again := placement.Decide(b, in, opts); again {
					t.Fatalf("it is decided twice: %+v", d)
				}
			}
			look(tc.mid)
			if !tc.kept {
				b.Spec.GracefulEvictionTasks = nil
			}
			in.Clusters, in.Now, in.Estimates = evictFleet("a:9 b:9", "", noon), noon.Add(time.Minute), map[string]estimate.Answer{}
			for cluster, fits := range tc.room {
				in.Estimates[cluster] = estimate.Answer{Fits: fits}
			}
			if diff := cmp.Diff([]string{"a", "b"}, placement.Asks(b, in, opts)); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			look(tc.want)
			in.Estimates, in.Now = map[string]estimate.Answer{"a": {Fits: 9}, "b": {Fits: 9}}, noon.Add(time.Hour)
			look(tc.want)
			if record, _ := placement.RecordOf(b); len(record.Left) > 0 || !record.Succeeded() {
				t.Errorf("it is to return still: %v, %s", record.Left, record.Message)
			}
		})
	}
}

// TestFailBackIsTriedAgain: what is kept from returning by anything but room is tried again once that is over.
func TestFailBackIsTriedAgain(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, p := range map[string]policyv1alpha1.Placement{
		"by fixed weights": {ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{StaticWeightList: weights("a:1 b:1")})},
		"as a whole":       oneOf(),
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(2, p), "a:9 b:9", "b:2", noon)
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{FailBackSeconds: ptr.To[int32](0)}
			look := func(tainted string, after time.Duration, opts placement.Options) string {
				opts.Failover = failover.Rules{Taints: true}
				if d, changed := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", tainted, noon), Now: noon.Add(after)}, opts); changed {
					d.Put(b)
				}
				b.Spec.GracefulEvictionTasks = nil
				return spaced(b.Spec.Clusters)
			}
			if got := look("b", time.Second, placement.Options{}); got != "a:2" {
				t.Fatalf("it was moved to %s", got)
			}
			if got := look("", time.Minute, placement.Options{Plugins: append(plugins.All(), picky{})}); got != "a:2" {
				t.Fatalf("while no cluster is liked it runs in %s", got)
			}
			if record, _ := placement.RecordOf(b); len(record.Left) != 1 || record.Succeeded() {
				t.Fatalf("it is to return no more: %v, %s", record.Left, record.Message)
			}
			if got := look("", time.Hour, placement.Options{}); !strings.Contains(got, "b:") {
				t.Errorf("it stays in %s", got)
			}
		})
	}
}

// TestARebalanceAfterADrain brings what runs in one cluster back to the one that was drained, although another
// has more room, and it runs in a third.
func TestARebalanceAfterADrain(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	b := placedOn(t, deployment(2, oneOf()), "a:9 b:9 c:20", "b:2", noon)
	fleet := evictFleet("a:9 b:9 c:20", "", noon)
	decide := func(at time.Time) string {
		if d, changed := placement.Decide(b, placement.Situation{Clusters: fleet, Now: at}, placement.Options{}); changed {
			d.Put(b)
		}
		return spaced(b.Spec.Clusters)
	}
	drained, _ := fleet.Cluster("b")
	drained.Spec.Taints = []corev1.Taint{failover.DrainTaint()}
	if got := decide(noon); got != "c:2" {
		t.Fatalf("drained to %s", got)
	}
	drained.Spec.Taints, b.Spec.GracefulEvictionTasks = nil, nil
	if got := decide(noon.Add(time.Second)); got != "c:2" {
		t.Fatalf("it returned by itself to %s", got)
	}
	b.Spec.RescheduleTriggeredAt = ptr.To(metav1.NewTime(noon.Add(time.Minute)))
	if got := decide(noon.Add(time.Minute)); got != "b:2" {
		t.Errorf("brought back to %s", got)
	}
}

// TestEachShapeReturns: however replicas are divided, what was moved off a cluster is brought back to that, by a rebalance after a
// drain as by failBackSeconds, whether its old copy has left or not.
func TestEachShapeReturns(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	of := func(s *policyv1alpha1.ReplicaSchedulingStrategy, more ...policyv1alpha1.SpreadConstraint) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ReplicaScheduling: s, SpreadConstraints: more}
	}
	aggregated := divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	for name, tc := range map[string]struct {
		placement            policyv1alpha1.Placement
		rooms, was, off, mid string
		replicas             int32
		back                 string
	}{
		"duplicated in one cluster":                 {of(nil, oneCluster()...), "a:9 b:9 c:20", "b:2", "b", "c:2", 2, "b:2"},
		"aggregated":                                {of(aggregated), "a:20 b:9", "b:3", "b", "a:3", 3, "b:3"},
		"aggregated in one cluster":                 {of(aggregated, oneCluster()...), "a:20 b:9", "b:3", "b", "a:3", 3, "b:3"},
		"aggregated in two clusters":                {of(aggregated), "a:20 b:2 c:2", "b:2 c:1", "b", "c:3", 3, "b:1 c:2"},
		"aggregated where one is little":            {of(aggregated), "a:40 b:1", "a:2 b:1", "b", "a:3", 3, "a:2 b:1"},
		"by room":                                   {of(dynamicWeight()), "a:20 b:20", "a:2 b:2", "b", "a:4", 4, "a:2 b:2"},
		"by room, of which there is more elsewhere": {of(dynamicWeight()), "a:90 b:9", "b:1", "b", "a:1", 1, "b:1"},
		"by room, of which there is much more":      {of(dynamicWeight()), "a:90 b:9", "a:2 b:1", "b", "a:3", 3, "a:2 b:1"},
		"by equal weights":                          {of(divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)), "a:9 b:9", "a:1 b:1", "b", "a:2", 2, "a:1 b:1"},
		"by weights, of which the last gives one":   {of(divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)), "a:9 b:9 c:9", "a:1 b:1", "b", "a:1 c:1", 2, "a:1 b:1"},
		"by a table of weights":                     {of(divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{StaticWeightList: weights("a:1 b:3")})), "a:9 b:9", "a:1 b:3", "b", "a:4", 4, "a:1 b:3"},
	} {
		for _, drains := range []bool{true, false} {
			for _, left := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, drained %t, left %t", name, drains, left), func(t *testing.T) {
					b := placedOn(t, deployment(tc.replicas, tc.placement), tc.rooms, tc.was, noon)
					tainted, opts := tc.off, placement.Options{Failover: failover.Rules{Taints: true}}
					if b.Spec.Failover = (&policyv1alpha1.FailoverBehavior{FailBackSeconds: ptr.To[int32](0)}); drains {
						b.Spec.Failover, tainted, opts = nil, "", placement.Options{}
					}
					decide := func(rooms, tainted, drained string, at time.Time, want string) {
						t.Helper()
						in := placement.Situation{Clusters: evictFleet(rooms, tainted, noon), Now: at}
						if c, found := in.Clusters.Cluster(drained); found {
							c.Spec.Taints = append(c.Spec.Taints, failover.DrainTaint())
						}
						if d, changed := placement.Decide(b, in, opts); changed {
							d.Put(b)
						}
						if got := spaced(b.Spec.Clusters); got != want {
							t.Fatalf("it runs in %s, want %s", got, want)
						}
					}
					drained := ""
					if drains {
						drained = tc.off
					}
					decide(tc.rooms, tainted, drained, noon.Add(time.Second), tc.mid)
					rooms := tc.rooms
					if left {
						b.Spec.GracefulEvictionTasks = nil
					} else {
						rooms = less(tc.rooms, tc.was, tc.off)
					}
					if drains {
						b.Spec.RescheduleTriggeredAt = ptr.To(metav1.NewTime(noon.Add(time.Minute)))
					}
					decide(rooms, "", "", noon.Add(time.Minute), tc.back)
					if record, _ := placement.RecordOf(b); len(record.Drained)+len(record.Left) > 0 {
						t.Errorf("it is back, and noted as away: %v %v", record.Drained, record.Left)
					}
				})
			}
		}
	}
}

// less is rooms while what was in a cluster still takes some of it.
func less(rooms, was, cluster string) string {
	out := targets(rooms)
	for i := range out {
		for _, t := range targets(was) {
			if out[i].Name == cluster && t.Name == cluster {
				out[i].Replicas -= t.Replicas
			}
		}
	}
	return spaced(out)
}

// weights is a table of static weights.
func weights(list string) []policyv1alpha1.StaticClusterWeight {
	var out []policyv1alpha1.StaticClusterWeight
	for _, t := range targets(list) {
		out = append(out, policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{t.Name}}, Weight: int64(t.Replicas)})
	}
	return out
}

// spaced is the reverse of targets.
func spaced(clusters []workv1alpha2.TargetCluster) string {
	out := ""
	for i, c := range clusters {
		if i > 0 {
			out += " "
		}
		out += fmt.Sprintf("%s:%d", c.Name, c.Replicas)
	}
	return out
}

// TestWhoReturnsAsks: clusters are asked what fits there when something returns, and not while it waits for that.
func TestWhoReturnsAsks(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	b := binding(deployment(2, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}, on("c", 2)))
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{FailBackSeconds: ptr.To[int32](60)}
	placement.Decision{
		Clusters: targets("c:2"), AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement),
		Record: placement.Record{
			Reason: workv1alpha2.BindingReasonSuccess, Message: workv1alpha2.SuccessfulSchedulingMessage, At: metav1.NewTime(noon),
			Left: []failover.Left{{Cluster: "b", Well: ptr.To(metav1.NewTime(noon))}},
		},
	}.Put(b)
	for after, want := range map[time.Duration][]string{30 * time.Second: nil, time.Minute: {"b", "c"}} {
		in := placement.Situation{Clusters: evictFleet("b:9 c:9", "", noon), Now: noon.Add(after)}
		if diff := cmp.Diff(want, placement.Asks(b, in, placement.Options{})); diff != "" {
			t.Errorf("asked after %s (-want +got):\n%s", after, diff)
		}
	}
}
