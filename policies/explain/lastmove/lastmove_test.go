package lastmove_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/explain/lastmove"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestText checks that an old copy counts as there while its Work exists, until
// its cluster has reported that it is gone.
func TestText(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	move := &eviction.Move{From: []string{"east", "west"}, To: []string{"north"}, Why: "it failed", At: metav1.NewTime(noon), Ended: ptr.To(metav1.NewTime(noon.Add(time.Minute)))}
	const came = "from east, west to north at 2026-01-02 12:00:00 UTC: it failed"
	for name, tc := range map[string]struct {
		move *eviction.Move
		runs []string // where it is placed; north where empty
		in   []string
		want string
	}{
		"it did not move":           {in: []string{"north"}, want: ""},
		"the old copies are gone":   {move: move, in: []string{"north"}, want: came + "; the old copy went at 12:01:00 UTC"},
		"one is in a cluster still": {move: move, in: []string{"north", "west"}, want: came + "; the old copy in west is to go"},
		"it runs in both again":     {move: move, runs: []string{"east", "north", "west"}, in: []string{"east", "north", "west"}, want: ""},
		"it runs in one again":      {move: move, runs: []string{"east", "north"}, in: []string{"east", "north"}, want: came + "; the old copy went at 12:01:00 UTC; it is in east again"},
		"one is left, one is back":  {move: move, runs: []string{"east", "north"}, in: []string{"east", "north", "west"}, want: came + "; the old copy in west is to go; it is in east again"},
		"its cluster left the fleet": {
			move: &eviction.Move{From: []string{"east"}, To: []string{"north"}, Why: placement.DueClusterLeaving, At: move.At, Ended: &move.At},
			want: "from east to north at 2026-01-02 12:00:00 UTC: a target cluster left",
		},
		"replicas that found no node": {
			move: &eviction.Move{From: []string{"east"}, To: []string{"north"}, Why: "found no node there", At: move.At, Ended: &move.At, Replicas: 2}, runs: []string{"east", "north"}, in: []string{"east", "north"},
			want: "2 replicas from east to north at 2026-01-02 12:00:00 UTC: found no node there",
		},
		"all are": {move: move, in: []string{"west", "east"}, want: came + "; the old copies in east, west are to go"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{}
			for _, name := range tc.runs {
				spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: name})
			}
			if got := lastmove.Text(tc.move, spec, tc.in, time.Time{}); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestIn checks that a Work is for the cluster whose execution namespace it is
// in, and for none in any other namespace.
func TestIn(t *testing.T) {
	work := func(namespace string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	}
	for name, tc := range map[string]struct {
		works []*workv1alpha1.Work
		want  []string
	}{
		"no Work":                  {},
		"two clusters, in order":   {works: []*workv1alpha1.Work{work("karmada-es-west"), work("karmada-es-east")}, want: []string{"west", "east"}},
		"a namespace of no member": {works: []*workv1alpha1.Work{work("shop"), work("karmada-es-east")}, want: []string{"east"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lastmove.In(tc.works)); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBack checks that a template which a drain moved is reported to come back only
// on request, and how depends on whether the drain is over.
func TestBack(t *testing.T) {
	cluster := func(name string, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{Taints: taints}}
	}
	got := lastmove.Back([]string{"east", "gone", "west"}, []*clusterv1alpha1.Cluster{cluster("east"), cluster("north"), cluster("west", failover.DrainTaint())})
	want := []string{
		"not by itself to east, of which the drain is over: flotilla uncordon east --return has it placed anew, by what counts now",
		"not to west while its drain is in force: flotilla uncordon west --return ends that, and has it placed anew",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestData checks that the text of a move has what becomes of the data in the
// clusters that were left, where a template makes claims.
func TestData(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db"},
		"spec": map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}},
	}}
	m, spec := &eviction.Move{From: []string{"east", "west"}}, &workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}}
	const want = "from west to east; it takes no data along: the PersistentVolumeClaims data-db-* stay in west, and elsewhere it goes on with those that are there, else with empty ones"
	got := []string{lastmove.Data("from west to east", m, spec, set), lastmove.Data("from west to east", m, spec, nil), lastmove.Data("", m, spec, set), lastmove.Data("", nil, spec, set)}
	if diff := cmp.Diff([]string{want, "from west to east", "", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnew: what failover moved does not come back by itself, unless its policy says after how long, or it does not become healthy.
func TestAnew(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	record := placement.Record{
		LastMove: &eviction.Move{From: []string{"west"}, To: []string{"east"}, Why: "untolerated taint {cluster.karmada.io/not-reachable:NoExecute}"},
		Rules:    &failover.Noted{},
	}
	everywhere := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Replicas: 2, Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}}}
	divided := everywhere.DeepCopy()
	divided.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	ordered := everywhere.DeepCopy()
	ordered.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "first"}, {AffinityName: "second"}}}
	returns := divided.DeepCopy()
	returns.Spec.Failover = &policyv1alpha1.FailoverBehavior{FailBackSeconds: ptr.To[int32](30)}
	one := everywhere.DeepCopy()
	one.Spec.Placement = &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MaxGroups: 1}}}
	gone := one.DeepCopy()
	one.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west", Reason: workv1alpha2.EvictionReasonTaintUntolerated}}
	first := one.DeepCopy()
	first.Spec.GracefulEvictionTasks[0].PurgeMode = policyv1alpha1.PurgeModeDirectly
	unhealthy := ordered.DeepCopy()
	unhealthy.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west", Reason: workv1alpha2.EvictionReasonTaintUntolerated, CreationTimestamp: ptr.To(metav1.NewTime(now))}}
	unhealthy.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Health: workv1alpha2.ResourceUnhealthy}, {ClusterName: "west", Health: workv1alpha2.ResourceHealthy}}
	clusters := []*clusterv1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}}}}
	for name, tc := range map[string]struct {
		of     *workv1alpha2.ResourceBinding
		record placement.Record
		want   []string
	}{
		"it is divided":        {divided, record, []string{"not by itself to west: once that is back, without the taint, flotilla rebalance deployment/web -n shop has it placed anew, by what counts then"}},
		"its policy says when": {returns, record, nil},
		"it never moved":       {divided, placement.Record{}, nil},
		"it runs everywhere":   {everywhere, record, []string{"to west once that is back, without the taint, as it runs in each cluster that fits"}},
		"it is refused there": {everywhere, placement.Record{LastMove: record.LastMove, Rules: record.Rules, Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "quota shop/team is exceeded."},
			[]string{"to west, which is back, once that is not refused any more: quota shop/team is exceeded"}},
		"another affinity may be in force":       {ordered, record, nil},
		"it does not become healthy where it is": {unhealthy, record, []string{"to west at 12:10:00 UTC, unless it is healthy where it is by then"}},
		"it may not become healthy where it is":  {one, record, []string{"to west once that is back, without the taint, if it does not become healthy where it is; else not by itself: then flotilla rebalance deployment/web -n shop has it placed anew, by what counts then"}},
		"its old copy goes first":                {first, record, []string{"not by itself to west: once that is back, without the taint, flotilla rebalance deployment/web -n shop has it placed anew, by what counts then"}},
		"its old copy is gone":                   {gone, record, []string{"not by itself to west: once that is back, without the taint, flotilla rebalance deployment/web -n shop has it placed anew, by what counts then"}},
		"nobody knows when it would return":      {unhealthy, placement.Record{LastMove: record.LastMove}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lastmove.Anew(tc.record, tc.of, clusters, "deployment/web -n shop", now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
