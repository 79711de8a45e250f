package failover_test

import (
	"testing"
	"time"

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
		moves = moves.Next(failover.Tolerated(&b.Spec), now)
	}
	now = now.Add(10 * 32 * time.Minute).Add(time.Second)
	b.Status.AggregatedStatus[0].UnhealthySince = ptr.To(metav1.NewTime(now))
	if _, next := failover.Application(fleet{member("a", "", noon)}, b, moves, now); next.Sub(now) != 31*time.Second {
		t.Errorf("after it was well for long, it is moved after %s", next.Sub(now))
	}
	if moves = moves.Next(30*time.Second, now); moves.Count != 1 {
		t.Errorf("it counts %d moves", moves.Count)
	}
}
