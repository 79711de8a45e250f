package failover_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestApplication checks when an application has been unhealthy in a cluster for
// too long.
func TestApplication(t *testing.T) {
	moves := func(seconds *int32) *policyv1alpha1.FailoverBehavior {
		return &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: seconds}}}
	}
	half := moves(ptr.To[int32](30))
	cases := map[string]struct {
		failover *policyv1alpha1.FailoverBehavior
		alone    bool // its dependencies are not propagated
		health   workv1alpha2.ResourceHealth
		ago      time.Duration
		cluster  *clusterv1alpha1.Cluster
		left     bool // it is placed elsewhere
		due      bool
		in       time.Duration
	}{
		"the policy says nothing of it":       {health: workv1alpha2.ResourceUnhealthy, ago: time.Hour},
		"healthy":                             {failover: half, health: workv1alpha2.ResourceHealthy, ago: time.Hour},
		"not known":                           {failover: half, health: workv1alpha2.ResourceUnknown, ago: time.Hour},
		"unhealthy for a while":               {failover: half, health: workv1alpha2.ResourceUnhealthy, ago: 10 * time.Second, in: 21 * time.Second},
		"for just as long as it may be":       {failover: half, health: workv1alpha2.ResourceUnhealthy, ago: 30 * time.Second, in: time.Second},
		"for longer":                          {failover: half, health: workv1alpha2.ResourceUnhealthy, ago: 31 * time.Second, due: true},
		"at once":                             {failover: moves(ptr.To[int32](0)), health: workv1alpha2.ResourceUnhealthy, ago: time.Second, due: true},
		"a negative toleration":               {failover: moves(ptr.To[int32](-9)), health: workv1alpha2.ResourceUnhealthy, ago: time.Second, due: true},
		"five minutes, where it does not say": {failover: moves(nil), health: workv1alpha2.ResourceUnhealthy, ago: 5 * time.Minute, in: time.Second},
		"what it needs would stay behind":     {failover: half, alone: true, health: workv1alpha2.ResourceUnhealthy, ago: time.Hour},
		"it was left already":                 {failover: half, left: true, health: workv1alpha2.ResourceUnhealthy, ago: time.Hour},
		"the cluster is lost":                 {failover: half, cluster: member("a", clusterv1alpha1.ClusterNotReachableReason, noon), health: workv1alpha2.ResourceUnhealthy, ago: time.Hour},
		"the cluster leaves":                  {failover: half, cluster: leaving(member("a", "", noon)), health: workv1alpha2.ResourceUnhealthy, ago: time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.cluster == nil {
				tc.cluster = member("a", "", noon)
			}
			b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: !tc.alone, Failover: tc.failover, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
			if tc.left {
				b.Spec.Clusters[0].Name = "b"
			}
			item := workv1alpha2.AggregatedStatusItem{ClusterName: "a", Health: tc.health, UnhealthySince: ptr.To(metav1.NewTime(noon.Add(-tc.ago)))}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{item}
			due, next := failover.Application(fleet{tc.cluster}, b, failover.Moves{}, noon)
			var in time.Duration
			if !next.IsZero() {
				in = next.Sub(noon)
			}
			if due["a"].Application != tc.due || in != tc.in {
				t.Errorf("due %v, in %s; want %t, in %s", due, in, tc.due, tc.in)
			}
			b.Status.AggregatedStatus[0].UnhealthySince = nil // as stored by a hub that did not set it
			if due, next := failover.Application(fleet{tc.cluster}, b, failover.Moves{}, noon); due != nil || !next.IsZero() {
				t.Errorf("without a time: %v, %v", due, next)
			}
		})
	}
}

// TestAnApplicationThatFailsEverywhere checks that an application may be
// unhealthy for longer each time that it is moved soon after the last move.
func TestAnApplicationThatFailsEverywhere(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: true, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](30)}}}
	var moves failover.Moves
	now := noon
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, 32 * time.Minute} {
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(now))}}
		_, next := failover.Application(fleet{member("a", "", noon)}, b, moves, now)
		if got := next.Sub(now) - time.Second; got != want {
			t.Errorf("move %d after %s, want %s", i+1, got, want)
		}
		now = next
		due, _ := failover.Application(fleet{member("a", "", noon)}, b, moves, now)
		moves = *due.Moves(&moves, []string{"a"}, now)
	}
}

// TestWhatIsToleratedForEver: an application that may be unhealthy for as long as its policy can say is not moved for that, however
// often it was, and those moves count until it was well for as long.
func TestWhatIsToleratedForEver(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: true, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](math.MaxInt32)}}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(noon))}}
	for _, count := range []int{1, 2, 3, 9} {
		before := failover.Moves{Count: count, At: metav1.NewTime(noon.Add(-24 * time.Hour))}
		if due, next := failover.Application(fleet{member("a", "", noon.Add(-48*time.Hour))}, b, before, noon.Add(time.Hour)); due != nil || next.Sub(noon) != 100*365*24*time.Hour+time.Second {
			t.Errorf("after %d moves: due %v, next in %s", count, due, next.Sub(noon))
		}
	}
}

// TestPausesNeverShrink checks from when on an application is moved once more, after it was moved two times and then has not
// been well for long: what else happened meanwhile makes that no sooner.
func TestPausesNeverShrink(t *testing.T) {
	for name, tc := range map[string]struct {
		tolerated int32
		ill       time.Duration // since when it is unhealthy, after the last move
		ready     time.Duration // since when its cluster is ready
		want      time.Duration // after the last move
		anew      bool
	}{
		"it was unhealthy there right away":                  {tolerated: 60, ready: -time.Hour, want: 4*time.Minute + time.Second},
		"it was so before, as it runs in several clusters":   {tolerated: 60, ill: -3 * time.Minute, ready: -time.Hour, want: 4*time.Minute + time.Second},
		"it took a while":                                    {tolerated: 60, ill: time.Minute, ready: -time.Hour, want: 5*time.Minute + time.Second},
		"its image was pulled for longer than it may be ill": {tolerated: 5, ill: 5 * time.Minute, ready: -time.Hour, want: 5*time.Minute + 21*time.Second},
		"its cluster was lost meanwhile":                     {tolerated: 5, ill: 20 * time.Minute, ready: 19 * time.Minute, want: 20*time.Minute + 21*time.Second},
		"it was well for long":                               {tolerated: 5, ill: 20 * time.Minute, ready: -time.Hour, want: 20*time.Minute + 6*time.Second, anew: true},
		"nothing is tolerated":                               {ill: time.Second, ready: -time.Hour, want: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: true, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &tc.tolerated}}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(noon.Add(tc.ill)))}}
			before := failover.Moves{Count: 2, At: metav1.NewTime(noon)}
			in := fleet{member("a", "", noon.Add(tc.ready))}
			if due, next := failover.Application(in, b, before, noon.Add(max(tc.ill, 0))); due != nil || next.Sub(noon) != tc.want {
				t.Errorf("due %v, moved %s after the last move, want %s", due, next.Sub(noon), tc.want)
			}
			due, _ := failover.Application(in, b, before, noon.Add(tc.want))
			want := failover.Due{"a": {Why: "an application that was unhealthy for more than " + failover.Tolerated(&b.Spec).String(), Application: true, Anew: tc.anew}}
			if diff := cmp.Diff(want, due); diff != "" {
				t.Errorf("then (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhichMovesCount checks that only what fails counts as moved, and earlier moves not once it was well for long.
func TestWhichMovesCount(t *testing.T) {
	at := func(count int, when time.Time) *failover.Moves {
		return &failover.Moves{Count: count, At: metav1.NewTime(when)}
	}
	due := failover.Due{"fails": {Application: true}, "failed late": {Application: true, Anew: true}, "tainted": {}}
	for name, tc := range map[string]struct {
		before *failover.Moves
		leaves []string
		want   *failover.Moves
	}{
		"the first time":                  {nil, []string{"fails"}, at(1, noon)},
		"soon after others":               {at(3, long), []string{"fails"}, at(4, noon)},
		"long after others":               {at(3, long), []string{"failed late"}, at(1, noon)},
		"off two, and off one of them so": {at(3, long), []string{"failed late", "fails"}, at(4, noon)},
		"for a taint":                     {at(3, long), []string{"tainted"}, at(3, long)},
		"off none":                        {at(3, long), nil, at(3, long)},
	} {
		if diff := cmp.Diff(tc.want, due.Moves(tc.before, tc.leaves, noon.Add(time.Second/2))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAMoveOfTheFuture: once the clock was set back, an application does not stay where it is until that time.
func TestAMoveOfTheFuture(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: true, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](30)}}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(noon))}}
	_, next := failover.Application(fleet{member("a", "", long)}, b, failover.Moves{Count: 1, At: metav1.NewTime(noon.Add(24 * time.Hour))}, noon)
	if next.Sub(noon) != 61*time.Second {
		t.Errorf("it is moved in %s", next.Sub(noon))
	}
}

// TestFails checks what is announced about an application that is unhealthy.
func TestFails(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: true, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](30)}}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, UnhealthySince: ptr.To(metav1.NewTime(noon))}}
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		moves   failover.Moves
		ago     time.Duration
		want    string
	}{
		"it may yet recover":               {cluster: member("a", "", long), ago: 10 * time.Second, want: "a at 12:00:31 UTC (in 21s) unless it is healthy by then: unhealthy since 12:00:00 UTC"},
		"it was moved a moment ago":        {cluster: member("a", "", long), moves: failover.Moves{Count: 1, At: metav1.NewTime(noon)}, ago: 10 * time.Second, want: "a at 12:01:01 UTC (in 51s) unless it is healthy by then: unhealthy since 12:00:00 UTC, after a move for the same reason: the fault may be the application's own"},
		"it fails wherever it is moved":    {cluster: member("a", "", long), moves: failover.Moves{Count: 3, At: metav1.NewTime(noon)}, ago: time.Hour, want: "a now: unhealthy since 12:00:00 UTC, after 3 moves for the same reason: the fault may be the application's own"},
		"it was well for long after moves": {cluster: member("a", "", long), moves: failover.Moves{Count: 3, At: metav1.NewTime(noon.Add(-240 * time.Hour))}, ago: time.Hour, want: "a now: unhealthy since 12:00:00 UTC"},
		"it is due":                        {cluster: member("a", "", long), ago: time.Minute, want: "a now: unhealthy since 12:00:00 UTC"},
		"its cluster is lost":              {cluster: member("a", clusterv1alpha1.ClusterNotReachableReason, noon)},
		"it is not unhealthy there":        {cluster: member("b", "", long)},
		"its cluster leaves the fleet":     {cluster: leaving(member("a", "", long))},
	} {
		now, got := noon.Add(tc.ago), ""
		if l, fails := failover.Fails(tc.cluster, b, tc.moves, now); fails {
			got = l.Text(now)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
