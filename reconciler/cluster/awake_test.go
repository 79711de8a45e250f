package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/sleepdetector"
)

// TestAnAgentIsGivenItsTimeAnewOnceTheHubWakes: nothing could be heard of it before.
func TestAnAgentIsGivenItsTimeAnewOnceTheHubWakes(t *testing.T) {
	const s = time.Second
	type seen struct {
		Ready string
		Again time.Duration
	}
	w := watchOver(pulled(metav1.ConditionTrue))
	w.heartbeats.awake.Begin()
	w.reconcile(t)
	w.beat(t, workv1alpha2.NamespaceKarmadaCluster, w.clock.Now())
	var got []seen
	for _, step := range []time.Duration{75 * s, 10 * s, 15 * s, 15 * s} { // after the first it has slept
		w.clock.Step(step)
		ready, _, again := w.reconcile(t)
		got = append(got, seen{ready, again})
		if _, yes := w.heartbeats.within("edge-1", time.Unix(0, 0), present); yes && len(got) == 1 {
			t.Error("one that was not heard of since counts as there")
		}
	}
	state := "True AsTheAgentSays"
	if diff := cmp.Diff([]seen{{state, 40 * s}, {state, 30 * s}, {state, 15 * s}, {"Unknown " + clusterv1alpha1.ClusterStatusUnknownReason, 0}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAMemberIsLookedAtOnceTheHubWakes: as after a start, what it was before does not stand
// for long.
func TestAMemberIsLookedAtOnceTheHubWakes(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after outcome
		want          []string
	}{
		"it has died meanwhile": {well, unreachable, []string{"0s ClusterReady 1 kinds", "8s ClusterNotReachable 1 kinds"}},
		"it is well":            {well, well, []string{"0s ClusterReady 1 kinds"}},
		"it has come back":      {unreachable, well, []string{"0s ClusterNotReachable 0 kinds", "1s ClusterReady 1 kinds"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clocktesting.NewFakeClock(time.Unix(1000, 0))
				s := &scene{is: tc.before, kinds: some, awake: sleepdetector.New(c, asleep)}
				s.awake.Begin()
				observe(t, s, false)
				s.set(func() { s.is = tc.after })
				pass(500 * time.Millisecond)
				c.Step(75 * time.Second)
				s.awake.Since()
				pass(9 * time.Second)
				s.expect(t, tc.want...)
			})
		})
	}
}
