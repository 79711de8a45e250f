package placement_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
)

func taint(key string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

func TestExplain(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{
		cluster("a", 10, region("eu")), cluster("b", 20, region("eu")), cluster("c", 30, region("us"), taint("night")),
	})
	dynamic := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
	own := policyv1alpha1.ClusterAffinityTerm{AffinityName: "own", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"}}}
	all := policyv1alpha1.ClusterAffinityTerm{AffinityName: "all"}
	got := placement.Explain(placement.Request{Spec: deployment(6, policyv1alpha1.Placement{
		ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{own, all},
		ReplicaScheduling: dynamic,
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MaxGroups: 1}},
	}, on("a", 2))}, snap, placement.Options{})
	const unmatched, tainted = "cluster(s) did not match the placement cluster affinity constraint", "cluster(s) had untolerated taint {night:NoSchedule}"
	none := &placement.FitError{Clusters: 3, Reasons: []placement.Reason{
		{Plugin: "ClusterAffinity", Text: unmatched, Clusters: 3},
	}}
	want := placement.Trace{
		Clusters: []workv1alpha2.TargetCluster{on("a", 6)}, AffinityName: "all",
		Terms: []placement.TermTrace{
			{Name: "own", Err: none, Verdicts: []placement.Verdict{
				{Cluster: "a", Refused: "ClusterAffinity", Reason: unmatched, Available: -1},
				{Cluster: "b", Refused: "ClusterAffinity", Reason: unmatched, Available: -1},
				{Cluster: "c", Refused: "ClusterAffinity", Reason: unmatched, Available: -1},
			}},
			{
				Name: "all", Verdicts: []placement.Verdict{
					{Cluster: "a", Scores: map[string]int64{"ClusterAffinity": 0, "ClusterLocality": 100}, Available: 12, Assigned: 2, Selected: true, Weight: 10, Replicas: 6},
					{Cluster: "b", Scores: map[string]int64{"ClusterAffinity": 0, "ClusterLocality": 0}, Available: 20},
					{Cluster: "c", Refused: "TaintToleration", Reason: tainted, Available: -1},
				},
				Spread:   "1 of 2 clusters that fit, wanted 1 cluster",
				Division: "2 replicas stay where they run; 4 replicas divided by the room that is left: a 4 (room 10 of 10)",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

// plugin is one of one's own.
type plugin struct {
	name   string
	filter func(*framework.Cluster) string
	score  func(*framework.Cluster) int64
}

func (p plugin) Name() string { return p.name }

func (p plugin) Filter(_ *framework.Request, c *framework.Cluster) string {
	if p.filter == nil {
		return ""
	}
	return p.filter(c)
}

func (p plugin) Score(_ *framework.Request, c *framework.Cluster) int64 {
	if p.score == nil {
		return 0
	}
	return p.score(c)
}

func TestPlugins(t *testing.T) {
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 1), cluster("b", 1), cluster("c", 1)})
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{MaxGroups: 1}}}
	panics := func(c *framework.Cluster) string {
		var none map[string]string
		none[c.Name] = "x"
		return ""
	}
	cases := map[string]struct {
		plugin  plugin
		want    string
		wantErr string
	}{
		"what it prefers is taken":                       {plugin{name: "Mine", score: func(c *framework.Cluster) int64 { return int64(c.Name[0]) - 'a' }}, "{c:1}", ""},
		"more than a hundred is a hundred":               {plugin{name: "Mine", score: func(c *framework.Cluster) int64 { return 1000 - int64(c.Name[0]) }}, "{a:1}", ""},
		"less than nothing is nothing":                   {plugin{name: "Mine", score: func(c *framework.Cluster) int64 { return int64(c.Name[0]) - 1000 }}, "{a:1}", ""},
		"what it refuses is not":                         {plugin{name: "Mine", filter: func(c *framework.Cluster) string { return map[string]string{"a": "cluster(s) are a"}[c.Name] }}, "{b:1}", ""},
		"a filter that panics is an error that names it": {plugin{name: "Mine", filter: panics}, "{}", "plugin Mine panicked: assignment to entry in nil map"},
		"so is a score":                                  {plugin{name: "Mine", score: func(*framework.Cluster) int64 { panic("no") }}, "{}", "plugin Mine panicked: no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := placement.Request{Spec: deployment(1, one)}
			opts := placement.Options{Plugins: append(plugins.All(), tc.plugin)}
			agrees(t, req, snap, opts)
			got, err := placement.Place(req, snap, opts)
			if placement.Text(got.Clusters) != tc.want || text(err) != tc.wantErr {
				t.Errorf("placed on %s, %q; want %s, %q", placement.Text(got.Clusters), text(err), tc.want, tc.wantErr)
			}
			var failed *placement.PluginError
			if tc.wantErr != "" && (!errors.As(err, &failed) || !strings.Contains(string(failed.Stack), "explain_test.go")) {
				t.Errorf("the error does not say where: %#v", err)
			}
		})
	}
}

// A failure is written again when its cause is another one, and not when it
// counts other clusters or less capacity.
func TestFailuresDoNotChurn(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tainted := func(n int, keys int) placement.Snapshot {
		var out []*clusterv1alpha1.Cluster
		for i := range n {
			out = append(out, cluster(fmt.Sprintf("c%02d", i), 1, taint(fmt.Sprintf("k%d", i%keys))))
		}
		return placement.NewSnapshot(out)
	}
	roomy := func(pods int64) placement.Snapshot {
		return placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", pods)})
	}
	full := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)}
	cases := map[string]struct {
		placement     policyv1alpha1.Placement
		before, after placement.Snapshot
		message       string
		writes        bool
	}{
		"one more of a reason": {
			before: tainted(2, 1), after: tainted(3, 1),
			message: "0/2 clusters are available: 2 cluster(s) had untolerated taint {k0:NoSchedule}.",
		},
		"one more reason": {
			before: tainted(2, 1), after: tainted(2, 2), writes: true,
			message: "0/2 clusters are available: 2 cluster(s) had untolerated taint {k0:NoSchedule}.",
		},
		"one more of so many that not all are named": {
			before: tainted(9, 8), after: tainted(12, 12),
			message: "0/9 clusters are available: 2 cluster(s) had untolerated taint {k0:NoSchedule}, 1 cluster(s) had untolerated taint {k1:NoSchedule}, " +
				"1 cluster(s) had untolerated taint {k2:NoSchedule}, 1 cluster(s) had untolerated taint {k3:NoSchedule}, " +
				"1 cluster(s) had untolerated taint {k4:NoSchedule}, and 3 more reasons.",
		},
		"the last cluster goes": {
			before: tainted(1, 1), after: tainted(0, 1), writes: true,
			message: "0/1 clusters are available: 1 cluster(s) had untolerated taint {k0:NoSchedule}.",
		},
		"less room": {
			placement: full, before: roomy(5), after: roomy(4),
			message: "Clusters available replicas 5 are not enough to schedule.",
		},
		"fewer clusters than before, where more are wanted": {
			placement: policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{MinGroups: 5}}},
			before:    roomy(5), after: placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 1), cluster("b", 1)}),
			message: "spread over 5 clusters: only 1 fits",
		},
		"no cluster instead of no room": {
			placement: full, before: roomy(5), after: tainted(1, 1), writes: true,
			message: "Clusters available replicas 5 are not enough to schedule.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding(deployment(9, tc.placement))
			first, _ := placement.Decide(b, placement.Situation{Clusters: tc.before, Now: now}, placement.Options{})
			if first.Record.Message != tc.message {
				t.Errorf("message %q, want %q", first.Record.Message, tc.message)
			}
			first.Put(b)
			second, writes := placement.Decide(b, placement.Situation{Clusters: tc.after, Now: now.Add(time.Hour)}, placement.Options{})
			if writes != tc.writes {
				t.Errorf("writes = %v: %+v", writes, second.Record)
			}
			if !writes {
				if diff := cmp.Diff(first.Record, second.Record); diff != "" {
					t.Errorf("nothing to write, but (-written +decided):\n%s", diff)
				}
			}
		})
	}
}

// reserved is a snapshot in which load is reserved of a cluster.
func reserved(in placement.Snapshot, cluster string, load *estimate.Load) placement.Snapshot {
	return in.WithReservations(map[string]*estimate.Load{cluster: load})
}

// Reservations for others take capacity until the clusters report it themselves, and
// being asked for a fresh look does not give it back.
func TestReservationsAndModels(t *testing.T) {
	aggregated := policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)}
	req := placement.Request{Spec: deployment(8, aggregated)}
	nodes := cluster("nodes", 100, sizes) // 3 nodes each of 0, 4, … 32 cores
	small := cluster("small", 7)
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 10), cluster("b", 9)})
	load := estimate.LoadOf(3, req.Spec.ReplicaRequirements)
	big := deployment(2, aggregated)
	big.ReplicaRequirements.ResourceRequest[corev1.ResourceCPU] = resource.MustParse("40")
	cases := map[string]struct {
		req  placement.Request
		snap placement.Snapshot
		opts placement.Options
		want string
	}{
		"the roomiest is taken":                        {req, snap, placement.Options{}, "{a:8}"},
		"unless its room is reserved":                  {req, reserved(snap, "a", &load), placement.Options{}, "{b:8}"},
		"two reservations, and both are needed":        {req, snap.WithReservations(map[string]*estimate.Load{"a": &load, "b": &load}), placement.Options{}, "{a:4, b:4}"},
		"a reservation that ends":                      {req, reserved(reserved(snap, "a", &load), "a", nil), placement.Options{}, "{a:8}"},
		"a reservation of a cluster that there is not": {req, reserved(snap, "x", &load), placement.Options{}, "{a:8}"},
		"no node is large enough":                      {placement.Request{Spec: big}, placement.NewSnapshot([]*clusterv1alpha1.Cluster{nodes, small}), placement.Options{}, "{}"},
		"the sum would be, where nodes are not minded": {placement.Request{Spec: big}, placement.NewSnapshot([]*clusterv1alpha1.Cluster{nodes, small}), placement.Options{NoModels: true}, "{nodes:2}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := placement.Place(tc.req, tc.snap, tc.opts)
			if placement.Text(got.Clusters) != tc.want {
				t.Errorf("placed on %s, %v; want %s", placement.Text(got.Clusters), err, tc.want)
			}
		})
	}
}

// A renewed snapshot is as good as a new one.
func TestRenew(t *testing.T) {
	version := func(v string) func(*clusterv1alpha1.Cluster) {
		return func(c *clusterv1alpha1.Cluster) { c.UID, c.ResourceVersion = "u", v }
	}
	req := placement.Request{Spec: deployment(8, policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)})}
	load := estimate.LoadOf(30, nil)
	old := reserved(placement.NewSnapshot([]*clusterv1alpha1.Cluster{
		cluster("a", 10, version("1")), cluster("b", 20, version("1")), cluster("gone", 99, version("1")), cluster("c", 5),
	}), "b", &load)
	got := old.Renew([]*clusterv1alpha1.Cluster{cluster("c", 30), cluster("b", 20, version("1")), cluster("a", 99, version("2"))})
	if diff := cmp.Diff([]string{"a", "b", "c"}, got.Names()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	var capacity []int64
	for _, v := range placement.Explain(req, got, placement.Options{}).Terms[0].Verdicts {
		capacity = append(capacity, v.Available)
	}
	if diff := cmp.Diff([]int64{99, 20, 30}, capacity); diff != "" {
		t.Errorf("room (-want +got):\n%s", diff)
	}
}

func BenchmarkRenew(b *testing.B) {
	clusters := fleet(1000)
	for i, c := range clusters {
		c.UID, c.ResourceVersion = "u", fmt.Sprint(i)
	}
	snap := placement.NewSnapshot(clusters)
	b.ReportAllocs()
	for b.Loop() {
		snap.Renew(clusters)
	}
}
