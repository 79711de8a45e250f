package whatif_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/whatif"
)

// patient is failover with the defaults of the control plane.
var patient = failover.Rules{Taints: true, Tolerance: 5 * time.Minute}

// lostSince is a cluster that is lost since then.
func lostSince(c *clusterv1alpha1.Cluster, since time.Time) *clusterv1alpha1.Cluster {
	return whatif.Down(c, whenLost(), since)
}

// happen returns the clusters after events; the manifest of one that joins is that of "north".
func happen(t *testing.T, clusters []*clusterv1alpha1.Cluster, words ...string) ([]*clusterv1alpha1.Cluster, []whatif.Event, error) {
	t.Helper()
	events, err := whatif.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.File() != "" {
			events[i] = e.Joining(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(e.File(), ".yaml")}})
		}
	}
	out, err := whatif.Fleet{Clusters: clusters, Policies: whenLost(), Now: noon}.After(events)
	return out, events, err
}

// TestWhatBecomesOfAPlacement has the scheduler decide, once events have happened, about three replicas in each of east and west.
func TestWhatBecomesOfAPlacement(t *testing.T) {
	forGood := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	forADay := []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](86400)}}
	gold := &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	cases := map[string]struct {
		events    string
		rules     failover.Rules
		tolerates []corev1.Toleration
		affinity  *policyv1alpha1.ClusterAffinity
		room      int64 // in each cluster; 9 if it is not said
		lost      *clusterv1alpha1.Cluster
		want      string
	}{
		"a cluster is down":                                {events: "west:down", rules: patient, want: "east=6, leaves west"},
		"and failover is off":                              {events: "west:down", want: "east=3 west=3"},
		"and it is tolerated for good":                     {events: "west:down", rules: patient, tolerates: forGood, want: "east=3 west=3"},
		"and it is tolerated for a day, which has passed":  {events: "west:down", rules: patient, tolerates: forADay, want: "east=6, leaves west"},
		"and no other has room":                            {events: "west:down", rules: patient, room: 2, want: "east=3 west=3"},
		"two are down at once, which nobody believes":      {events: "west:down,east:down,add:north.yaml,north:capacity=cpu=9", rules: patient, want: "east=3 west=3"},
		"so are those of which one is down for a minute":   {events: "east:down", rules: patient, lost: lostSince(cluster("west", 9), noon.Add(-time.Minute)), want: "east=3 west=3"},
		"one is drained, and failover is off":              {events: "west:drain", want: "east=6, leaves west"},
		"one is cordoned":                                  {events: "west:cordon", rules: patient, want: "east=3 west=3"},
		"one is removed":                                   {events: "west:remove", want: "east=6"},
		"one is removed, and no other has room":            {events: "west:remove", room: 2, want: "east=3"},
		"one gets a taint":                                 {events: "west:taint=a=b:NoExecute", rules: patient, want: "east=6, leaves west"},
		"one gets a taint, and failover is off":            {events: "west:taint=a=b:NoExecute", want: "east=3 west=3"},
		"one gets a taint that only keeps off what is new": {events: "west:taint=a=b:NoSchedule", rules: patient, want: "east=3 west=3"},
		"one loses the label that it is chosen by":         {events: "west:label=tier-", affinity: gold, want: "east=6, leaves west"},
		"one gets another value of that label":             {events: "west:label=tier=iron", affinity: gold, want: "east=6, leaves west"},
		"one has no room for more":                         {events: "east:capacity=0%,west:down", rules: patient, want: "east=3 west=3"},
		"one joins, and takes over":                        {events: "east:capacity=0%,add:north.yaml,north:capacity=cpu=9,west:drain", want: "east=3 north=3, leaves west"},
		"one joins":                                        {events: "add:north.yaml", want: "east=3 west=3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.room == 0 {
				tc.room = 9
			}
			clusters := []*clusterv1alpha1.Cluster{cluster("east", tc.room), cluster("west", tc.room)}
			if tc.lost != nil {
				clusters[1] = tc.lost
			}
			for _, c := range clusters {
				c.Labels = map[string]string{"tier": "gold"}
			}
			b := web("east", "west")
			p := b.BindingSpec().Placement
			p.ClusterTolerations, p.ClusterAffinity = tc.tolerates, tc.affinity
			b.SetAnnotations(nil)
			placement.Decision{Clusters: b.BindingSpec().Clusters, AppliedPlacement: placement.AppliedPlacement(p), Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, At: metav1.NewTime(noon.Add(-time.Hour))}}.Put(b)
			after, _, err := happen(t, clusters, tc.events)
			if err != nil {
				t.Fatal(err)
			}
			if d, changed := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot(after), Now: noon}, placement.Options{Failover: tc.rules}); changed {
				d.Put(b)
			}
			if diff := cmp.Diff(tc.want, places(b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if clusters[0].Labels["tier"] != "gold" || clusters[0].Spec.Taints != nil || clusters[0].Status.ResourceSummary.Allocatable.Pods().Value() != tc.room {
				t.Error("the clusters themselves were changed")
			}
		})
	}
}

// TestEventsThatCannotBe names what is wrong.
func TestEventsThatCannotBe(t *testing.T) {
	bare := cluster("bare", 1)
	bare.Status.ResourceSummary = nil
	clusters := []*clusterv1alpha1.Cluster{cluster("east", 9), bare}
	_, _, err := happen(t, clusters, "wets:down")
	var unknown *whatif.UnknownError
	if !errors.As(err, &unknown) || unknown.Name != "wets" || !slices.Equal(unknown.Clusters, []string{"bare", "east"}) {
		t.Errorf("a cluster that there is not: %v", err)
	}
	for words, want := range map[string]string{
		"add:east.yaml":     "add:east.yaml names the cluster east, which is in the fleet already",
		"bare:capacity=50%": "bare:capacity=50%: the cluster does not report what it has: name amounts, such as cpu=100,memory=200Gi",
	} {
		if _, _, err := happen(t, clusters, words); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
	if _, _, err := happen(t, clusters, "north:down", "add:north.yaml"); err == nil {
		t.Error("a cluster is down before it has joined")
	}
	if _, _, err := happen(t, clusters, "add:north.yaml", "north:down"); err != nil {
		t.Errorf("a cluster is down after it has joined: %v", err)
	}
}

// TestAClusterThatJoinsServesWhatAllOthersDo, unless it says what it serves, and is ready.
func TestAClusterThatJoinsServesWhatAllOthersDo(t *testing.T) {
	east, west := cluster("east", 9), cluster("west", 9)
	east.Status.APIEnablements = append(east.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "rare/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Rare"}}})
	after, _, err := happen(t, []*clusterv1alpha1.Cluster{east, west}, "add:north.yaml")
	if err != nil {
		t.Fatal(err)
	}
	north := after[2]
	if diff := cmp.Diff(west.Status.APIEnablements, north.Status.APIEnablements); diff != "" {
		t.Errorf("it serves (-want +got):\n%s", diff)
	}
	if !meta.IsStatusConditionTrue(north.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || len(north.Spec.Taints) > 0 {
		t.Errorf("it is not ready: %+v", north)
	}
}

// TestCapacity changes what a cluster has, and its nodes with it.
func TestCapacity(t *testing.T) {
	cases := map[string]struct {
		event string
		want  string
	}{
		"half":                            {"east:capacity=50%", "cpu=5 memory=100Gi pods=55 nodes=5"},
		"one and a half":                  {"east:capacity=150%", "cpu=15 memory=300Gi pods=165 nodes=15"},
		"nothing":                         {"east:capacity=0%", "cpu=0 memory=0 pods=0 nodes=0"},
		"amounts: the scarcest has nodes": {"east:capacity=cpu=8,memory=40Gi", "cpu=8 memory=40Gi pods=110 nodes=2"},
		"of what it did not have":         {"east:capacity=nvidia.com/gpu=4", "cpu=10 memory=200Gi nvidia.com/gpu=4 pods=110 nodes=10"},
		"a small part of a large amount":  {"east:capacity=0.1%", "cpu=10m memory=214748364 pods=110m nodes=0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := cluster("east", 110)
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
				Allocatable:          corev1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("200Gi"), "pods": resource.MustParse("110")},
				AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 10}},
			}
			after, _, err := happen(t, []*clusterv1alpha1.Cluster{c}, tc.event)
			if err != nil {
				t.Fatal(err)
			}
			got := after[0].Status.ResourceSummary
			var parts []string
			for name, q := range got.Allocatable {
				parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
			}
			slices.Sort(parts)
			parts = append(parts, fmt.Sprintf("nodes=%d", got.AllocatableModelings[0].Count))
			if diff := cmp.Diff(tc.want, strings.Join(parts, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotes says why nothing moves, and what stays.
func TestNotes(t *testing.T) {
	cases := map[string]struct {
		events string
		rules  failover.Rules
		runs   []workv1alpha2.Binding
		want   []string
	}{
		"nothing to be said": {"west:drain", patient, []workv1alpha2.Binding{web("west")}, nil},
		"failover is off":    {"west:down", failover.Rules{}, []workv1alpha2.Binding{web("west"), web("east", "west")}, []string{"failover is off: nothing moves off west", "what runs nowhere but in west, which is down: Deployment shop/web"}},
		"what moves":         {"west:down", patient, []workv1alpha2.Binding{web("east")}, []string{"what has moved off west is deleted there once it answers again"}},
		"a loss that is not believed": {"west:down,east:down", patient, nil, []string{
			"2 of 2 clusters were lost at once: east, west: that looks as if the control plane itself were cut off, so nothing moves off west and east before somebody confirms the loss",
		}},
		"a taint that moves nothing": {"west:taint=a:NoExecute", failover.Rules{}, nil, []string{"failover is off: the taint a:NoExecute moves nothing off west"}},
		"a cluster without room":     {"add:north.yaml", patient, nil, []string{"north has no room for what is divided by it: its manifest does not say what it has; north:capacity=cpu=100,memory=200Gi does"}},
		"a cluster with room":        {"add:north.yaml,north:capacity=cpu=9", patient, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after, events, err := happen(t, []*clusterv1alpha1.Cluster{cluster("east", 9), cluster("west", 9)}, tc.events)
			if err != nil {
				t.Fatal(err)
			}
			got := whatif.Outcome{Events: events, Clusters: after, Rules: tc.rules, Bindings: tc.runs, Now: noon}.Notes()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRulesIn: those of the last placement that succeeded count.
func TestRulesIn(t *testing.T) {
	placed := func(minutes int, reason string, rules failover.Rules) workv1alpha2.Binding {
		b := web("east")
		b.SetAnnotations(nil)
		placement.Decision{Record: placement.Record{Reason: reason, Rules: rules.Noted(), At: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))}}.Put(b)
		return b
	}
	on, off := failover.Rules{Taints: true, Tolerance: time.Minute}, failover.Rules{}
	cases := map[string]struct {
		bindings []workv1alpha2.Binding
		want     bool
	}{
		"nothing is placed":         {nil, false},
		"it is on":                  {[]workv1alpha2.Binding{placed(0, workv1alpha2.BindingReasonSuccess, on)}, true},
		"it was switched on":        {[]workv1alpha2.Binding{placed(0, workv1alpha2.BindingReasonSuccess, off), placed(1, workv1alpha2.BindingReasonSuccess, on)}, true},
		"it was switched off":       {[]workv1alpha2.Binding{placed(1, workv1alpha2.BindingReasonSuccess, off), placed(0, workv1alpha2.BindingReasonSuccess, on)}, false},
		"a refusal keeps old rules": {[]workv1alpha2.Binding{placed(0, workv1alpha2.BindingReasonSuccess, on), placed(1, workv1alpha2.BindingReasonQuotaExceeded, off)}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := whatif.RulesIn(tc.bindings); got.Taints != tc.want {
				t.Errorf("on: %t, want %t", got.Taints, tc.want)
			}
		})
	}
}
