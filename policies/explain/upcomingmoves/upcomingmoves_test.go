package upcomingmoves_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain/upcomingmoves"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// cluster returns a cluster that has been Ready, or lost for a reason, since
// before noon.
func cluster(name, reason string, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
	status := metav1.ConditionTrue
	if reason != "" {
		status = metav1.ConditionFalse
	}
	out := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, Taints: taints}}
	out.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	for _, c := range []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason},
		{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue},
	} {
		c.LastTransitionTime = metav1.NewTime(noon.Add(-time.Minute))
		meta.SetStatusCondition(&out.Status.Conditions, c)
	}
	return out
}

func noExecute(key string) corev1.Taint {
	added := metav1.NewTime(noon.Add(-time.Minute))
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
}

// bound returns the binding of a Deployment in west that is to run in one
// cluster, decided with the given rules.
func bound(t *testing.T, rules failover.Rules) *workv1alpha2.ResourceBinding {
	t.Helper()
	record, err := json.Marshal(placement.Record{Reason: "Success", At: metav1.NewTime(noon.Add(-time.Hour)), Rules: rules.Noted()})
	if err != nil {
		t.Fatal(err)
	}
	placed := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	applied, err := json.Marshal(placed)
	if err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Generation: 1, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}}}
	b.Annotations = map[string]string{workv1alpha2.SchedulingDecisionAnnotation: string(record), policyv1alpha1.PolicyPlacementAnnotation: string(applied)}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Replicas: 1, Clusters: []workv1alpha2.TargetCluster{{Name: "west", Replicas: 1}},
		Placement: &placed,
	}
	return b
}

// TestOf checks which of its clusters a template will leave, and when.
func TestOf(t *testing.T) {
	const unreachable = clusterv1alpha1.TaintClusterUnreachable
	lost := cluster("west", clusterv1alpha1.ClusterNotReachableReason, noExecute(unreachable))
	well := cluster("east", "")
	drained := cluster("west", "", failover.DrainTaint())
	rules := failover.Rules{Taints: true, Tolerance: 5 * time.Minute}
	complete := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "west", Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"True"}]}`)}}}
	}
	fails := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.PropagateDeps = true
		b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](90)}}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(noon.Add(-time.Minute)))}}
	}
	for name, tc := range map[string]struct {
		rules    failover.Rules
		clusters []*clusterv1alpha1.Cluster
		change   func(*workv1alpha2.ResourceBinding)
		want     []string
	}{
		"it is unhealthy, and failover of clusters is off": {
			clusters: []*clusterv1alpha1.Cluster{well, cluster("west", "")}, change: fails,
			want: []string{"west at 12:00:31 UTC (in 31s) unless it is healthy by then: unhealthy since 11:59:00 UTC"},
		},
		"it is unhealthy, and there is no other": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{cluster("west", "")}, change: fails,
			want: []string{"stays in west, which it should leave (unhealthy since 11:59:00 UTC) at 12:00:31 UTC: it cannot be moved: no other place: 0/1 clusters are available: 1 cluster(s) had an application that was unhealthy for more than 1m30s."},
		},
		"it was moved a moment ago, and is unhealthy again": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, cluster("west", "")},
			change: func(b *workv1alpha2.ResourceBinding) {
				fails(b)
				record, _ := placement.RecordOf(b)
				record.Moves = &failover.Moves{Count: 1, At: metav1.NewTime(noon.Add(-time.Minute))}
				maps.Copy(b.Annotations, placement.Decision{Record: record}.Annotations())
			},
			want: []string{"west at 12:02:01 UTC (in 2m1s) unless it is healthy by then: unhealthy since 11:59:00 UTC, after a move for the same reason: the fault may be the application's own"},
		},
		"it was unhealthy when its cluster was lost": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost}, change: fails,
			want: []string{"west at 12:04:00 UTC (in 4m) unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		},
		"it is unhealthy, and its cluster is tainted": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, cluster("west", "", noExecute("drill"))}, change: fails,
			want: []string{"west now: untolerated taint {drill:NoExecute}"},
		},
		"its cluster is lost": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			want: []string{"west at 12:04:00 UTC (in 4m) unless it is back: untolerated taint {cluster.karmada.io/unreachable:NoExecute}"},
		},
		"its cluster is lost, and there is no other": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{lost},
			want: []string{"stays in west, which it should leave (untolerated taint {cluster.karmada.io/unreachable:NoExecute}) at 12:04:00 UTC: it cannot be moved: no other place: 0/1 clusters are available: 1 cluster(s) had untolerated taint {cluster.karmada.io/unreachable:NoExecute}."},
		},
		"its cluster is lost, and it has finished there": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			change: complete,
			want:   []string{"stays in west, which it should leave (untolerated taint {cluster.karmada.io/unreachable:NoExecute}): it has finished there, and would run once more elsewhere"},
		},
		"its cluster is drained, and it has finished there": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, drained}, change: complete,
			want: []string{"stays in west, which it should leave (untolerated taint {cluster.flotilla.io/drain:NoExecute}): it has finished there, and would run once more elsewhere"},
		},
		"its cluster is drained, it has finished there, and the decision has noted no rules": {
			clusters: []*clusterv1alpha1.Cluster{well, drained}, change: complete,
			want: []string{"stays in west, which it should leave (untolerated taint {cluster.flotilla.io/drain:NoExecute}): it has finished there, and would run once more elsewhere"},
		},
		"its cluster is drained, it has finished there, and its policy tolerates that": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, drained},
			change: func(b *workv1alpha2.ResourceBinding) {
				complete(b)
				b.Spec.Placement.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			},
		},
		"its cluster is drained, and it runs": {rules: rules, clusters: []*clusterv1alpha1.Cluster{well, drained}},
		"its cluster is well":                 {rules: rules, clusters: []*clusterv1alpha1.Cluster{well, cluster("west", "")}},
		"another cluster is lost":             {rules: rules, clusters: []*clusterv1alpha1.Cluster{cluster("north", clusterv1alpha1.ClusterNotReachableReason, noExecute(unreachable)), cluster("west", "")}},
		"the decision has noted no rules":     {clusters: []*clusterv1alpha1.Cluster{well, lost}},
		"it is being deleted": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			change: func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{Time: noon} },
		},
		"it has no placement": {
			rules: rules, clusters: []*clusterv1alpha1.Cluster{well, lost},
			change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bound(t, tc.rules)
			if tc.change != nil {
				tc.change(b)
			}
			in := placement.Situation{Clusters: placement.NewSnapshot(tc.clusters), Now: noon}
			got := upcomingmoves.Of(b, nil, tc.clusters, in, placement.Options{})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDataStaysBehind checks that users see that the volume claims of a
// StatefulSet do not move with it.
func TestDataStaysBehind(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db"},
		"spec": map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}},
	}}
	since := metav1.NewTime(noon.Add(-30 * time.Second))
	taint := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}
	lost := cluster("west", clusterv1alpha1.ClusterNotReachableReason, taint)
	const data = "; it takes no data along: the PersistentVolumeClaims data-db-* stay in west, and elsewhere it goes on with those that are there, else with empty ones"
	for name, tc := range map[string]struct {
		clusters []*clusterv1alpha1.Cluster
		want     bool
	}{
		"it has another place": {[]*clusterv1alpha1.Cluster{cluster("east", ""), lost}, true},
		"it has none":          {[]*clusterv1alpha1.Cluster{lost}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := placement.Situation{Clusters: placement.NewSnapshot(tc.clusters), Now: noon}
			b := bound(t, failover.Rules{Taints: true, Tolerance: time.Minute})
			got := upcomingmoves.Of(b, set, tc.clusters, in, placement.Options{})
			if len(got) != 1 || strings.HasSuffix(got[0], data) != tc.want || strings.Contains(got[0], "data-db") != tc.want {
				t.Errorf("told (want data: %t): %q", tc.want, got)
			}
		})
	}
}

// TestOver checks that a template which could not leave a drained cluster need
// not leave it any more once the drain has ended.
func TestOver(t *testing.T) {
	const drain, other = "It stays in west (untolerated taint {cluster.flotilla.io/drain:NoExecute}): none", "It stays in west (untolerated taint {a:NoExecute}): none"
	drained := cluster("west", "", failover.DrainTaint())
	for name, tc := range map[string]struct {
		stays   unplaced.Stays
		cluster *clusterv1alpha1.Cluster
		want    bool
	}{
		"the drain goes on":        {unplaced.Stays{Message: drain, Clusters: []string{"west"}}, drained, false},
		"it has ended":             {unplaced.Stays{Message: drain, Clusters: []string{"west"}}, cluster("west", ""), true},
		"it was for another taint": {unplaced.Stays{Message: other, Clusters: []string{"west"}}, cluster("west", ""), false},
		"no cluster is named":      {unplaced.Stays{Message: drain}, cluster("west", ""), false},
		"another one is drained":   {unplaced.Stays{Message: drain, Clusters: []string{"east"}}, drained, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := upcomingmoves.Over(&tc.stays, []*clusterv1alpha1.Cluster{tc.cluster}); got != tc.want {
				t.Errorf("over: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestRoom: what to do follows from the taint for which a template must leave.
func TestRoom(t *testing.T) {
	for name, tc := range map[string]struct{ taint, want string }{
		"a drain":            {clusterv1alpha1.TaintClusterDrain, "end the drain: flotilla uncordon east west, or let the policy mean another cluster with room"},
		"a cluster is lost":  {clusterv1alpha1.TaintClusterUnreachable, "bring the cluster back: flotilla describe cluster east west, or let the policy mean another cluster with room"},
		"one is not ready":   {clusterv1alpha1.TaintClusterNotReady, "bring the cluster back: flotilla describe cluster east west, or let the policy mean another cluster with room"},
		"a taint of a user":  {"example.com/maintenance", "take the taint away, have its policy tolerate it, or let the policy mean another cluster with room"},
		"one with that name": {"example.com/" + clusterv1alpha1.TaintClusterDrain, "take the taint away, have its policy tolerate it, or let the policy mean another cluster with room"},
	} {
		stays := &unplaced.Stays{Clusters: []string{"east", "west"}, Message: "It stays in east (untolerated taint {" + tc.taint + ":NoExecute}): no other place"}
		if got := upcomingmoves.Room(stays); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestRoomByCause: where no taint has a template leave, what to do follows from what does.
func TestRoomByCause(t *testing.T) {
	const state = "It stays in east: its state cannot be carried over: {.nothing.x} of the status in east, for the label ex.com/s: nothing is not found."
	const rule = "correct the jsonPath of the rule in spec.failover of its policy, or take that out"
	for name, tc := range map[string]struct{ message, want string }{
		"a rule for its state leads nowhere": {state, rule},
		"its application fails":              {"It stays in east (an application that was unhealthy for more than 3s): no other place: none", "mend the application, or let the policy mean another cluster with room"},
		"somebody asks for it":               {"It stays in east (an eviction task of Ops): no other place: none", "end the task: take it out of spec.gracefulEvictionTasks of the binding, or let the policy mean another cluster with room"},
		"a taint":                            {"It stays in east (untolerated taint {a:NoExecute}): no other place: none", "take the taint away, have its policy tolerate it, or let the policy mean another cluster with room"},
		"a rule, and a drain of another": {"It stays in west (untolerated taint {" + clusterv1alpha1.TaintClusterDrain + ":NoExecute}): no other place: none " + state,
			rule + "; end the drain: flotilla uncordon east west, or let the policy mean another cluster with room"},
	} {
		stays := &unplaced.Stays{Clusters: []string{"east", "west"}, Message: tc.message}
		if got := upcomingmoves.Room(stays); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestAwaits: a copy waits for its cluster to be back where the template was moved off that, and nobody keeps it there.
func TestAwaits(t *testing.T) {
	const waits = "the copy there goes once west is back, if it is healthy elsewhere by then"
	lost, there := cluster("west", clusterv1alpha1.ClusterNotReachableReason), cluster("west", "")
	moved := workv1alpha2.GracefulEvictionTask{FromCluster: "west", Producer: workv1alpha2.EvictionProducerTaintManager, Reason: workv1alpha2.EvictionReasonTaintUntolerated}
	kept := moved
	kept.SuppressDeletion = new(bool)
	*kept.SuppressDeletion = true
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		runs    string
		tasks   []workv1alpha2.GracefulEvictionTask
		want    string
	}{
		"it was moved, and its cluster is lost":  {lost, "east", []workv1alpha2.GracefulEvictionTask{moved}, waits},
		"its cluster is there":                   {there, "east", []workv1alpha2.GracefulEvictionTask{moved}, ""},
		"it was not moved":                       {lost, "west", nil, ""},
		"it could not be moved":                  {lost, "west", []workv1alpha2.GracefulEvictionTask{moved}, ""},
		"somebody asked that it stays":           {lost, "east", []workv1alpha2.GracefulEvictionTask{kept}, ""},
		"its cluster is lost, another was left":  {lost, "east", []workv1alpha2.GracefulEvictionTask{{FromCluster: "north"}}, ""},
		"its cluster is not known to this fleet": {cluster("north", clusterv1alpha1.ClusterNotReachableReason), "east", []workv1alpha2.GracefulEvictionTask{moved}, ""},
	} {
		spec := &workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: tc.runs}}, GracefulEvictionTasks: tc.tasks}
		if got := upcomingmoves.Awaits(spec, "west", []*clusterv1alpha1.Cluster{tc.cluster}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
