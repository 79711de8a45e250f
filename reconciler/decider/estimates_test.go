package decider

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/answers"
)

// byNodes answers from the nodes of clusters, and with errors about others.
type byNodes map[string]*nodes.Index

func (n byNodes) MaxReplicas(_ context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForReplicas(need, assumed)
	return n.most(cluster, ask, err)
}

func (n byNodes) MaxSets(_ context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForSets(namespace, components, assumed)
	return n.most(cluster, ask, err)
}

func (n byNodes) most(cluster string, ask *nodes.Ask, err error) (int32, error) {
	if x, there := n[cluster]; there && err == nil {
		return nodes.Most(x, ask, nodes.Resources{}, nodes.Quotas{}), nil
	}
	return 0, fmt.Errorf("%s is not known: %w", cluster, err)
}

// nodesOf are so many nodes of as many cores.
func nodesOf(count int, cores string) *nodes.Index {
	x := &nodes.Index{}
	for i := range count {
		n := &nodes.Node{Name: fmt.Sprintf("n%03d", i), Allocatable: nodes.AmountsOf(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceMemory: resource.MustParse("64Gi")})}
		x.Node(n.Name, n)
	}
	return x
}

// remote answers as its function does.
type remote func(ctx context.Context, cluster string) (int32, error)

func (r remote) MaxReplicas(ctx context.Context, cluster string, _ *workv1alpha2.ReplicaRequirements, _ []estimate.Assumed) (int32, error) {
	return r(ctx, cluster)
}

func (r remote) MaxSets(ctx context.Context, cluster, _ string, _ []workv1alpha2.Component, _ []estimate.Assumed) (int32, error) {
	return r(ctx, cluster)
}

// TestNodesDecide has a cluster whose sum is large and whose nodes are small, and what was
// placed a moment ago takes its place on a node.
func TestNodesDecide(t *testing.T) {
	wide := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	}
	d := New(hubOf(cluster("large", capacity(100)), cluster("small", capacity(100))).Build(), Options{
		Estimators: Estimators{Watched: byNodes{"large": nodesOf(2, "4"), "small": nodesOf(50, "2")}},
		Clock:      clocktesting.NewFakeClock(time.Unix(0, 0)),
	})
	got := []string{}
	for i := range 3 {
		d := decide(t, d, divided(fmt.Sprint("web", i), 1, wide))
		got = append(got, d.Record.Reason+" "+placement.Text(d.Clusters))
	}
	want := []string{"Success {large:1}", "Success {large:1}", "Unschedulable {}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
}

// profiled answers from the nodes that clusters reported, so long ago.
type profiled struct {
	byNodes
	ages map[string]time.Duration
}

func (t profiled) Age(_ context.Context, cluster string) time.Duration { return t.ages[cluster] }

// TestWhatClustersReportedOfTheirNodesDecides has clusters whose sums are large, and which told
// of small nodes, a while ago, or of more than there can be.
func TestWhatClustersReportedOfTheirNodesDecides(t *testing.T) {
	const age = 90 * time.Second
	cases := map[string]struct {
		pods     int64 // that it has places for, beside four cores; zero: enough, and 50 cores
		profiled ProfileEstimator
		remote   map[string]int32
		seen     byNodes
		want     string
	}{
		"nothing was told":                        {want: "Success {a:4} []"},
		"of nodes that are too small":             {profiled: profiled{byNodes: byNodes{"a": nodesOf(40, "1")}}, want: "Unschedulable {} []"},
		"of nodes that are not":                   {profiled: profiled{byNodes: byNodes{"a": nodesOf(40, "3")}}, want: "Success {a:4} []"},
		"what is seen counts first":               {profiled: profiled{byNodes: byNodes{"a": nodesOf(40, "3")}}, seen: byNodes{"a": nodesOf(40, "1")}, want: "Unschedulable {} []"},
		"no estimator is asked besides":           {profiled: profiled{byNodes: byNodes{"a": nodesOf(40, "1")}}, remote: map[string]int32{"a": 9}, want: "Unschedulable {} []"},
		"of another cluster, and one is asked":    {profiled: profiled{byNodes: byNodes{"b": nodesOf(40, "1")}}, remote: map[string]int32{"a": 0}, want: "Unschedulable {} []"},
		"a while ago":                             {profiled: profiled{byNodes{"a": nodesOf(5, "2")}, map[string]time.Duration{"a": age}}, want: "Success {a:4} [{a 5 1m30s}]"},
		"a while ago, and an estimator is asked":  {profiled: profiled{byNodes{"a": nodesOf(5, "2")}, map[string]time.Duration{"a": age}}, remote: map[string]int32{"a": 3}, want: "Unschedulable {} []"},
		"of more than the cluster has places for": {pods: 15, profiled: profiled{byNodes: byNodes{"a": nodesOf(40, "8")}}, want: "Unschedulable {} []"},
		"of as many as it may have by now":        {pods: 16, profiled: profiled{byNodes: byNodes{"a": nodesOf(40, "8")}}, want: "Success {a:4} []"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask := Estimators{Profiled: tc.profiled, Remote: remote(func(_ context.Context, cluster string) (int32, error) {
				if n, ok := tc.remote[cluster]; ok {
					return n, nil
				}
				return 0, errors.New("nobody knows")
			})}
			if tc.seen != nil {
				ask.Watched = tc.seen
			}
			a := cluster("a", capacity(50))
			if tc.pods > 0 {
				a.Status.ResourceSummary.Allocatable = corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: *resource.NewQuantity(tc.pods, resource.DecimalSI)}
			}
			d := New(hubOf(a).Build(), Options{Estimators: ask, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
			is := decide(t, d, divided("web", 4, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			}))
			if got := fmt.Sprint(is.Record.Reason, " ", placement.Text(is.Clusters), " ", is.Record.Stale); got != tc.want {
				t.Errorf("= %s, want %s", got, tc.want)
			}
		})
	}
}

// without reports nodes, and not what is asked of them.
type without struct{ profiled }

func (without) MaxReplicas(_ context.Context, cluster string, _ *workv1alpha2.ReplicaRequirements, _ []estimate.Assumed) (int32, error) {
	return 0, fmt.Errorf("cluster %s: %w", cluster, &profile.UnreportedError{What: "the label zone"})
}

// TestWhatIsNotReportedIsNamed has clusters report their nodes, and not what is asked of them: what they report counts, unless
// somebody else answers.
func TestWhatIsNotReportedIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		remote map[string]int32
		want   string
	}{
		"nobody else answers": {nil, `Success {a:4} &{[] [{a the label zone}]}`},
		"an estimator does":   {map[string]int32{"a": 9}, `Success {a:4} &{[{a 9  estimator}] []}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(hubOf(cluster("a", capacity(50))).Build(), Options{
				Estimators: Estimators{Profiled: without{}, Remote: remote(func(_ context.Context, cluster string) (int32, error) {
					if n, ok := tc.remote[cluster]; ok {
						return n, nil
					}
					return 0, errors.New("nobody knows")
				})},
				Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
			})
			is := decide(t, d, divided("web", 4))
			asked := &struct {
				Clusters []answers.Answer
				Missing  []answers.Unreported
			}{is.Record.Estimates.Clusters, is.Record.Estimates.Unreported}
			if got := fmt.Sprint(is.Record.Reason, " ", placement.Text(is.Clusters), " ", asked); got != tc.want {
				t.Errorf("= %s, want %s", got, tc.want)
			}
		})
	}
}

// TestWhatWasReportedAgesOn has a cluster fall silent, and its last report expire.
func TestWhatWasReportedAgesOn(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	from := profiled{byNodes{"a": nodesOf(5, "2")}, map[string]time.Duration{"a": time.Minute}}
	d := New(hubOf(cluster("a", capacity(50))).Build(), Options{Estimators: Estimators{Profiled: from}, NoReservations: true, Clock: clock})
	try := func(web string) string { return fmt.Sprint(decide(t, d, divided(web, 4)).Record.Stale) }
	got := []string{try("web1")}
	delete(from.byNodes, "a")
	clock.SetTime(clock.Now().Add(time.Minute))
	got = append(got, try("web2"))
	clock.SetTime(clock.Now().Add(memory - 2*time.Minute))
	got = append(got, try("web3"))
	if diff := cmp.Diff([]string{"[{a 10 1m0s}]", "[{a 10 2m0s}]", "[]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestADeadEstimatorCostsItsClusterAlone has one of three estimators fail in every way that
// there is, and come back.
func TestADeadEstimatorCostsItsClusterAlone(t *testing.T) {
	faults := map[string]remote{
		"an error": func(context.Context, string) (int32, error) { return 0, errors.New("refused") },
		"never":    func(ctx context.Context, _ string) (int32, error) { <-ctx.Done(); return 0, ctx.Err() },
		"never, and it does not mind being told to stop": func(context.Context, string) (int32, error) { select {} },
		"negative": func(context.Context, string) (int32, error) { return -5, nil },
		"absurd":   func(context.Context, string) (int32, error) { return math.MaxInt32 - 1, nil },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			var mu sync.Mutex
			broken := false
			ask := remote(func(ctx context.Context, cluster string) (int32, error) {
				mu.Lock()
				fails := broken && cluster == "b"
				mu.Unlock()
				if fails {
					return fault(ctx, cluster)
				}
				return 2, nil
			})
			breaks := func(is bool) {
				mu.Lock()
				defer mu.Unlock()
				broken = is
			}
			d := New(hubOf(cluster("a", capacity(50)), cluster("b", capacity(50)), cluster("c", capacity(50))).Build(),
				Options{Estimators: Estimators{Remote: ask, Timeout: time.Second}, NoReservations: true, Clock: clock})
			try := func(web string) string {
				d := decide(t, d, divided(web, 6))
				return fmt.Sprint(placement.Text(d.Clusters), d.Record.Stale)
			}
			got := []string{try("web1")}
			breaks(true)
			clock.SetTime(clock.Now().Add(time.Minute))
			got = append(got, try("web2"))
			got = append(got, try("web3"))
			clock.SetTime(clock.Now().Add(memory))
			got = append(got, try("web4")) // by what it reports
			breaks(false)
			got = append(got, try("web5"))
			want := []string{"{a:2, b:2, c:2}[]", "{a:2, b:2, c:2}[{b 2 1m0s}]", "{a:2, b:2, c:2}[{b 2 1m0s}]", "{b:6}[]", "{a:2, b:2, c:2}[]"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decided (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWasReservedSinceIsNotFreeAnyMore has an estimator die while bindings are placed.
func TestWhatWasReservedSinceIsNotFreeAnyMore(t *testing.T) {
	answers := true
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	d := New(hubOf(cluster("a", capacity(50))).Build(), Options{Clock: clock, Estimators: Estimators{Remote: remote(func(context.Context, string) (int32, error) {
		if !answers {
			return 0, errors.New("gone")
		}
		return 4, nil
	})}})
	got := []string{}
	for i := range 4 {
		d := decide(t, d, divided(fmt.Sprint("web", i), 2))
		got = append(got, fmt.Sprint(d.Record.Reason, d.Record.Stale))
		answers = false
		clock.SetTime(clock.Now().Add(time.Second))
	}
	want := []string{"Success[]", "Success[{a 2 1s}]", "Unschedulable[{a 0 2s}]", "Unschedulable[{a 0 3s}]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
}

func TestPromisesAreCountedByWhatTheyAre(t *testing.T) {
	d := New(hubOf(cluster("a", capacity(50))).Build(), Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), Estimators: Estimators{Watched: byNodes{"a": nodesOf(9, "9")}}})
	for i := range 3 {
		decide(t, d, divided(fmt.Sprint("web", i), 2))
	}
	last := divided("web3", 1, func(b *workv1alpha2.ResourceBinding) { b.Spec.ReplicaRequirements.PriorityClassName = "gold" })
	decide(t, d, last)
	counts := func() map[string]int32 {
		out := map[string]int32{}
		for _, a := range d.reservations.assumed("a") {
			for _, c := range a.Components {
				out[a.Namespace+"/"+c.ReplicaRequirements.PriorityClassName] += c.Replicas
			}
		}
		return out
	}
	namespace := last.Namespace
	if diff := cmp.Diff(map[string]int32{namespace + "/": 6, namespace + "/gold": 1}, counts()); diff != "" {
		t.Errorf("assumed (-want +got):\n%s", diff)
	}
	d.Withdraw(last)
	d.BindingGone(divided("web0", 2))
	if diff := cmp.Diff(map[string]int32{namespace + "/": 4}, counts()); diff != "" {
		t.Errorf("assumed once one was not written and another is gone (-want +got):\n%s", diff)
	}
}

// TestWhatIsAssumedTakesOfQuotas is a case that clients of Karmada's check: a quota of 1000m,
// of which nothing is used yet, and sets of 150m.
func TestWhatIsAssumedTakesOfQuotas(t *testing.T) {
	x := nodesOf(3, "16")
	m := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	x.Quota("shop", "q", nodes.QuotaOf(&corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: m("1000m"), Used: m("0")}}))
	d := New(hubOf(cluster("a", capacity(100))).Build(), Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), Estimators: Estimators{Watched: byNodes{"a": x}}})
	onOne := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"}
		b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	}
	set := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Replicas, b.Spec.ReplicaRequirements = 0, nil
		b.Spec.Components = []workv1alpha2.Component{
			{Name: "one", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: m("50m")}},
			{Name: "two", Replicas: 2, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: m("50m")}},
		}
	}
	got := []string{}
	for i := range 7 {
		got = append(got, decide(t, d, divided(fmt.Sprint("set", i), 0, onOne, set)).Record.Reason)
	}
	last := decide(t, d, divided("web", 1, onOne, func(b *workv1alpha2.ResourceBinding) { b.Spec.ReplicaRequirements.ResourceRequest = m("200m") }))
	got = append(got, last.Record.Reason)
	want := []string{"Success", "Success", "Success", "Success", "Success", "Success", "SchedulerError", "SchedulerError"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
	if len(last.Clusters) != 0 || !strings.Contains(last.Record.Message, "no enough resource") {
		t.Errorf("the last runs in %v: %s", last.Clusters, last.Record.Message)
	}
}
