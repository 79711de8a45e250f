package placement_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// evictFleet has clusters with room for this many replicas each, "b:2", of which some have a
// taint that moves what runs there.
func evictFleet(rooms, tainted string, since time.Time) placement.Snapshot {
	var out []*clusterv1alpha1.Cluster
	for _, t := range targets(rooms) {
		out = append(out, cluster(t.Name, int64(t.Replicas), func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"})
			if strings.Contains(tainted, c.Name) {
				c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "drill", Effect: corev1.TaintEffectNoExecute, TimeAdded: ptr.To(metav1.NewTime(since))})
			}
		}))
	}
	return placement.NewSnapshot(out)
}

// TestEvict says where what runs in a cluster goes that must not run it any more.
func TestEvict(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	duplicated := policyv1alpha1.Placement{}
	byWeight := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})}
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	both := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}}
	tolerant := one
	tolerant.ClusterTolerations = []corev1.Toleration{{Key: "drill", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}}
	terms := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
		{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
		{AffinityName: "third", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c"}}},
	}}
	weighed := terms
	weighed.ReplicaScheduling = divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)
	named := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}}
	const taint = "untolerated taint {drill:NoExecute}"
	cases := map[string]struct {
		placement policyv1alpha1.Placement
		failover  *policyv1alpha1.FailoverBehavior
		replicas  int32
		rooms     string
		after     string // rooms once it is written, where it matters
		was       string
		tainted   string
		ago       time.Duration
		// want is where it runs then; tasks are those of clusters it leaves; stays is why it does
		// not leave one; next is when that changes. Nothing is written where want is empty.
		want  string
		tasks string
		stays string
		next  time.Duration
	}{
		"off the one that has it, to another":           {placement: one, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", want: "b:2", tasks: "a Gracefully"},
		"directly, as the policy says":                  {placement: one, failover: &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}}, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", want: "b:2", tasks: "a Directly"},
		"one of two copies: the other is enough":        {placement: duplicated, replicas: 2, rooms: "a:9 b:9", was: "a:2 b:2", tainted: "a", want: "b:2", tasks: "a Gracefully"},
		"two are asked for, and there is no third":      {placement: both, replicas: 2, rooms: "a:9 b:9", was: "a:2 b:2", tainted: "a", want: "a:2 b:2", stays: "It stays in a (" + taint + "): no other place: spread over 2 clusters: only 1 fits"},
		"the only cluster":                              {placement: duplicated, replicas: 2, rooms: "a:9", was: "a:2", tainted: "a", want: "a:2", stays: "It stays in a (" + taint + "): no other place: 0/1 clusters are available: 1 cluster(s) had " + taint + "."},
		"the only one that is named":                    {placement: named, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", want: "a:2", stays: "It stays in a (" + taint + "): no other place: 0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 1 cluster(s) had " + taint + "."},
		"all of them":                                   {placement: duplicated, replicas: 2, rooms: "a:9 b:9", was: "a:2 b:2", tainted: "a b", want: "a:2 b:2", stays: "It stays in a (" + taint + "), b (" + taint + "): no other place: 0/2 clusters are available: 2 cluster(s) had " + taint + "."},
		"a part, which has room elsewhere":              {placement: byWeight, replicas: 6, rooms: "a:9 b:9", was: "a:3 b:3", tainted: "a", want: "b:6", tasks: "a Gracefully x3"},
		"a part, for which there is no room":            {placement: byWeight, replicas: 6, rooms: "a:9 b:2", was: "a:3 b:3", tainted: "a", want: "a:3 b:3", stays: "It stays in a (" + taint + "): no other place: Clusters available replicas 2 are not enough to schedule."},
		"two parts, of which one has room":              {placement: byWeight, replicas: 6, rooms: "a:9 b:9 c:3", after: "a:9 b:9 c:0", was: "a:3 b:3", tainted: "a b", want: "b:3 c:3", tasks: "a Gracefully x3", stays: "It stays in b (" + taint + "): no other place: Clusters available replicas 3 are not enough to schedule."},
		"whole, to the one that has room for all of it": {placement: one, replicas: 3, rooms: "a:9 b:1 c:3 d:2", was: "a:3", tainted: "a", want: "c:3", tasks: "a Gracefully x3"},
		"whole, and only a part has room anywhere":      {placement: one, replicas: 3, rooms: "a:9 b:1 c:2", was: "a:3", tainted: "a", want: "c:3", tasks: "a Gracefully x3"},
		"by a term of which no cluster has room":        {placement: terms, replicas: 2, rooms: "a:9 b:1 c:9", was: "a:2", tainted: "a", want: "c:2", tasks: "a Gracefully"},
		"by fixed weights, where another term has room": {placement: weighed, replicas: 2, rooms: "a:9 b:1 c:9", was: "a:2", tainted: "a", want: "c:2", tasks: "a Gracefully"},
		"not yet": {placement: tolerant, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", ago: 10 * time.Second, next: 20 * time.Second},
		"now":     {placement: tolerant, replicas: 2, rooms: "a:9 b:9", was: "a:2", tainted: "a", ago: 30 * time.Second, want: "b:2", tasks: "a Gracefully"},
		"not to where it would have to go from at once": {placement: tolerant, replicas: 2, rooms: "a:9 b:9 c:9", was: "a:2", tainted: "a b", ago: time.Minute, want: "c:2", tasks: "a Gracefully"},
		"what runs elsewhere does not mind":             {placement: one, replicas: 2, rooms: "a:9 b:9", was: "b:2", tainted: "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(tc.replicas, tc.placement), tc.rooms, tc.was, now)
			b.Spec.Failover = tc.failover
			in := placement.Situation{Clusters: evictFleet(tc.rooms, tc.tainted, now.Add(-tc.ago)), Now: now}
			opts := placement.Options{Failover: failover.Rules{Taints: true}}
			d, changed := placement.Decide(b, in, opts)
			if changed != (tc.want != "") {
				t.Fatalf("changed = %t: %+v", changed, d)
			}
			var next time.Duration
			if !d.Next.IsZero() {
				next = d.Next.Sub(now)
			}
			if next != tc.next {
				t.Errorf("again in %s, want %s", next, tc.next)
			}
			if !changed {
				return
			}
			if diff := cmp.Diff(outcomeOf(targets(tc.want), tc.tasks, tc.stays), outcomeOf(d.Clusters, tasksOf(d.Evictions), staysOf(d))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !d.Record.Succeeded() || d.Why != placement.DueEvicted && tc.placement.ReplicaScheduling != nil {
				t.Errorf("because %q: %+v", d.Why, d.Record)
			}
			d.Put(b)
			if tc.after != "" {
				in.Clusters = evictFleet(tc.after, tc.tainted, now.Add(-tc.ago))
			}
			if again, changed := placement.Decide(b, in, opts); changed {
				t.Errorf("decided twice: %+v", again)
			}
			in.Clusters = evictFleet(tc.rooms, "", now) // the taint goes
			d, changed = placement.Decide(b, in, opts)
			if staysOf(d) != "" || tc.stays != "" && !changed {
				t.Errorf("without the taint: %t, %+v", changed, d)
			}
			if tc.tasks != "" && tc.placement.ReplicaScheduling == nil && len(tc.placement.SpreadConstraints) > 0 && changed {
				t.Errorf("it returns by itself: %+v", d)
			}
		})
	}
}

// placedOn is a binding that was placed in these clusters.
func placedOn(t *testing.T, spec *workv1alpha2.ResourceBindingSpec, rooms, was string, now time.Time) *workv1alpha2.ResourceBinding {
	t.Helper()
	b := binding(spec)
	d := placement.Decision{
		Clusters: targets(was), AppliedPlacement: placement.AppliedPlacement(spec.Placement),
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Message: workv1alpha2.SuccessfulSchedulingMessage, At: metav1.NewTime(now.Add(-time.Hour))},
	}
	if terms := spec.Placement.ClusterAffinities; len(terms) > 0 {
		d.Record.AffinityName = terms[0].AffinityName
	}
	d.Put(b)
	if d, changed := placement.Decide(b, placement.Situation{Clusters: evictFleet(rooms, "", now), Now: now}, placement.Options{}); changed {
		t.Fatalf("it is not placed as it would be: %+v", d)
	}
	return b
}

type evicted struct {
	Clusters     []workv1alpha2.TargetCluster
	Tasks, Stays string
}

func outcomeOf(clusters []workv1alpha2.TargetCluster, tasks, stays string) evicted {
	return evicted{clusters, tasks, stays}
}

func staysOf(d placement.Decision) string {
	if d.Record.Stays == nil {
		return ""
	}
	return d.Record.Stays.Message
}

func tasksOf(tasks []workv1alpha2.GracefulEvictionTask) string {
	var out []string
	for _, task := range tasks {
		text := task.FromCluster + " " + string(task.PurgeMode)
		if task.Replicas != nil && *task.Replicas == 3 {
			text += " x3"
		}
		if task.Producer != "TaintManager" || task.Reason != "TaintUntolerated" || task.CreationTimestamp.IsZero() {
			text += " of " + task.Producer
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestVacate: what another scheduler places is taken off, and stays there until that one has
// found another cluster.
func TestVacate(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	spec := deployment(2, policyv1alpha1.Placement{}, on("a", 2), on("b", 2))
	spec.SchedulerName = "theirs"
	b := binding(spec)
	in := placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now), Now: now}
	opts := placement.Options{Failover: failover.Rules{Taints: true}}
	d, changed := placement.Decide(b, in, opts)
	if !changed || tasksOf(d.Evictions) != "a Gracefully" {
		t.Fatalf("%t: %+v", changed, d)
	}
	d.Put(b)
	if diff := cmp.Diff([]workv1alpha2.TargetCluster{on("b", 2)}, b.Spec.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if _, recorded := placement.RecordOf(b); recorded {
		t.Error("a record is written of a decision that is another's")
	}
	if d, changed := placement.Decide(b, in, opts); changed {
		t.Errorf("twice: %+v", d)
	}
	b.Spec.Clusters = nil // the other one has gone, too, before theirs has found a third
	in.Clusters = evictFleet("a:9", "a", now)
	if d, changed := placement.Decide(b, in, opts); changed {
		t.Errorf("although the cluster is not well: %+v", d)
	}
	in.Clusters = evictFleet("a:9", "", now)
	if d, changed := placement.Decide(b, in, opts); !changed || len(d.Evictions) > 0 || len(d.Clusters) != 1 || d.Clusters[0].Replicas != 2 {
		t.Errorf("it is not given back: %t, %+v", changed, d)
	}
	in.Clusters = evictFleet("a:9 b:9", "a", now)
	b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{on("a", 2)}
	if _, changed := placement.Decide(b, in, opts); changed {
		t.Error("although its scheduling is suspended")
	}
}

// TestEvictApplications says how an application that fails leaves its cluster.
func TestEvictApplications(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	task := func(edit func(*workv1alpha2.GracefulEvictionTask)) *workv1alpha2.GracefulEvictionTask {
		out := &workv1alpha2.GracefulEvictionTask{
			FromCluster: "a", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "ApplicationFailure", Producer: "resource-binding-application-failover-controller",
			Message: "an application that was unhealthy for more than 30s", Replicas: ptr.To[int32](2), ClustersBeforeFailover: []string{"a"}, CreationTimestamp: ptr.To(metav1.NewTime(now)),
		}
		edit(out)
		return out
	}
	cases := map[string]struct {
		rooms string
		purge policyv1alpha1.PurgeMode
		grace *int32
		want  *workv1alpha2.GracefulEvictionTask
		stays string
	}{
		"gracefully": {rooms: "a:9 b:9", purge: policyv1alpha1.PurgeModeGracefully, grace: ptr.To[int32](40), want: task(func(t *workv1alpha2.GracefulEvictionTask) { t.GracePeriodSeconds = ptr.To[int32](40) })},
		"directly":   {rooms: "a:9 b:9", purge: policyv1alpha1.PurgeModeDirectly, want: task(func(t *workv1alpha2.GracefulEvictionTask) { t.PurgeMode = policyv1alpha1.PurgeModeDirectly })},
		"by its user": {rooms: "a:9 b:9", purge: policyv1alpha1.PurgeModeNever, want: task(func(t *workv1alpha2.GracefulEvictionTask) {
			t.PurgeMode, t.SuppressDeletion = policyv1alpha1.PurgeModeNever, ptr.To(true)
		})},
		"nowhere to go to": {rooms: "a:9", purge: policyv1alpha1.PurgeModeDirectly,
			stays: "It stays in a (an application that was unhealthy for more than 30s): no other place: 0/1 clusters are available: 1 cluster(s) had an application that was unhealthy for more than 30s."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(2, one), tc.rooms, "a:2", now)
			b.Namespace = "shop"
			b.Spec.PropagateDeps = true
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
				DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](30)}, PurgeMode: tc.purge, GracePeriodSeconds: tc.grace,
			}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(now.Add(-time.Minute)))}}
			in := placement.Situation{Clusters: evictFleet(tc.rooms, "", now), Now: now}
			d, changed := placement.Decide(b, in, placement.Options{})
			if !changed || staysOf(d) != tc.stays {
				t.Fatalf("%t, stays %q: %+v", changed, staysOf(d), d)
			}
			var want []workv1alpha2.GracefulEvictionTask
			if tc.want != nil {
				want = append(want, *tc.want)
			}
			if diff := cmp.Diff(want, d.Evictions); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
			d.Put(b)
			if again, changed := placement.Decide(b, in, placement.Options{}); changed {
				t.Errorf("decided twice: %+v", again)
			}
		})
	}
}

// TestBackRatherThanNowhere: what was moved off a cluster goes back there when the cluster is well and there is no other
// place any more, and its copy there is not let go of meanwhile.
func TestBackRatherThanNowhere(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	opts := placement.Options{Failover: failover.Rules{Taints: true}}
	for name, tc := range map[string]struct {
		rooms, tainted string // once it was moved from a to b
		want           string
		tasks          string
	}{
		"a is well, b is there":        {"a:9 b:9", "", "b:2", "a Gracefully"},
		"a is well, b has gone":        {"a:9", "", "a:2", ""},
		"a is well, b has the taint":   {"a:9 b:9", "b", "a:2", "b Gracefully"},
		"a has the taint, b has gone":  {"a:9", "a", "", "a Gracefully"},
		"both have the taint":          {"a:9 b:9", "a b", "b:2", "a Gracefully"},
		"b has gone, and there is a c": {"a:9 c:9", "", "c:2", "a Gracefully"},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(2, one), "a:9 b:9", "a:2", now)
			d, _ := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now), Now: now}, opts)
			d.Put(b)
			if !strings.Contains(tc.rooms, "b") { // it leaves the fleet
				b.Spec.Clusters = nil
			}
			if d, changed := placement.Decide(b, placement.Situation{Clusters: evictFleet(tc.rooms, tc.tainted, now), Now: now}, opts); changed {
				d.Put(b)
			}
			if diff := cmp.Diff(outcomeOf(targets(tc.want), tc.tasks, ""), outcomeOf(b.Spec.Clusters, tasksOf(b.Spec.GracefulEvictionTasks), "")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBackEverywhere: what runs in every cluster that fits is taken back by one that is well again, before its copy there has gone.
func TestBackEverywhere(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	opts := placement.Options{Failover: failover.Rules{Taints: true}}
	for name, tc := range map[string]struct {
		tainted, reason string
		want            string
		tasks           string
	}{
		"a is well":                     {want: "a:2 b:2"},
		"a has the taint":               {tainted: "a", want: "b:2", tasks: "a Gracefully"},
		"somebody else wants a left":    {reason: "Maintenance", want: "b:2", tasks: "a Gracefully of TaintManager"},
		"a is well, and b has the same": {tainted: "b", want: "a:2", tasks: "b Gracefully"},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(t, deployment(2, policyv1alpha1.Placement{}), "a:9 b:9", "a:2 b:2", now)
			d, _ := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now), Now: now}, opts)
			d.Put(b)
			if got := tasksOf(b.Spec.GracefulEvictionTasks); got != "a Gracefully" {
				t.Fatalf("it is moved off: %s", got)
			}
			if tc.reason != "" {
				b.Spec.GracefulEvictionTasks[0].Reason = tc.reason
			}
			if d, changed := placement.Decide(b, placement.Situation{Clusters: evictFleet("a:9 b:9", tc.tainted, now), Now: now}, opts); changed {
				d.Put(b)
			}
			if diff := cmp.Diff(outcomeOf(targets(tc.want), tc.tasks, ""), outcomeOf(b.Spec.Clusters, tasksOf(b.Spec.GracefulEvictionTasks), "")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTasksOfOthers: a cluster that somebody else wants left is left if there is another, and says so if there is none.
func TestTasksOfOthers(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for rooms, want := range map[string]evicted{
		"a:9 b:9": {targets("b:2"), "a Gracefully of me", ""},
		"a:9":     {targets("a:2"), "a Gracefully of me", "It stays in a (an eviction task of me): no other place: 0/1 clusters are available: 1 cluster(s) had an eviction task of me."},
	} {
		b := placedOn(t, deployment(2, policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}), rooms, "a:2", now)
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "a", PurgeMode: policyv1alpha1.PurgeModeGracefully, Producer: "me"}}
		d, _ := placement.Decide(b, placement.Situation{Clusters: evictFleet(rooms, "", now), Now: now}, placement.Options{})
		if diff := cmp.Diff(want, outcomeOf(d.Clusters, tasksOf(d.Evictions), staysOf(d))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rooms, diff)
		}
	}
}
