package scheduler

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestSlowedConditions: a Cluster whose evictions are slowed down has the condition while bindings wait, with few
// writes.
func TestSlowedConditions(t *testing.T) {
	const words = " templates that were moved off clusters last are not healthy where they were moved to, such as Deployment shop/web: no more than "
	ill := func(n int) failover.Outcomes {
		return failover.Outcomes{Healthy: 20 - n, Ill: n, Such: "Deployment shop/web"}
	}
	type step struct {
		after    time.Duration
		outcomes failover.Outcomes
		waits    int // how many wait to leave west
		says     string
		writes   int
	}
	for name, tc := range map[string]struct {
		before bool // the Cluster has the condition from before the start
		steps  []step
	}{
		"it slows down, changes and goes on": {steps: []step{
			{outcomes: ill(0), waits: 3},
			{after: 10 * time.Second, outcomes: ill(20), waits: 3, says: "20 of 20" + words + "1 in a second are moved until they are, instead of as many as there are", writes: 1},
			{after: 10 * time.Second, outcomes: ill(19), waits: 3, says: "20 of 20" + words + "1 in a second are moved until they are, instead of as many as there are"},
			{after: 10 * time.Second, outcomes: ill(9), waits: 3, says: "9 of 20" + words + "5 in a second are moved until they are, instead of as many as there are", writes: 1},
			{after: time.Minute, outcomes: ill(8), waits: 3, says: "8 of 20" + words + "5 in a second are moved until they are, instead of as many as there are", writes: 1},
			{after: 10 * time.Second, outcomes: ill(0), waits: 3, writes: 1},
			{after: 10 * time.Second, outcomes: ill(0), waits: 3},
		}},
		"nobody waits any more": {steps: []step{
			{outcomes: ill(20), waits: 3, says: "20 of 20" + words + "1 in a second are moved until they are, instead of as many as there are", writes: 1},
			{after: 10 * time.Second, outcomes: ill(20), writes: 1},
		}},
		"it says so from before a start": {before: true, steps: []step{{outcomes: ill(0), writes: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
			west, east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			if tc.before {
				west.Status.Conditions = []metav1.Condition{{Type: "EvictionSlowed", Status: metav1.ConditionTrue, Reason: "MovedAreNotHealthy"}}
			}
			writes := 0
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(west, east).WithStatusSubresource(west).
				WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					writes++
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				}}).Build()
			p := newRateLimiter(0, clock)
			n := &slowedConditions{hub: hub, clock: clock, limiter: p, reported: map[string]report{}}
			for i, s := range tc.steps {
				clock.Step(s.after)
				p.outcomes = func(context.Context) failover.Outcomes { return s.outcomes }
				for k := range 4 { // the first goes at once
					req := reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(10*i + k)}}
					p.wait(t.Context(), req, "Deployment", placement.Decision{Evicts: []string{"west"}})
					if k > s.waits || s.waits == 0 {
						p.forget(req)
					}
				}
				if s.waits == 0 {
					p.turns = map[reconcile.Request]turn{}
				}
				writes = 0
				for range 2 { // the second time there is nothing to write
					if err := n.update(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				got := map[string]string{}
				for _, name := range []string{"west", "east"} {
					c := &clusterv1alpha1.Cluster{}
					if err := hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
						t.Fatal(err)
					}
					if says := meta.FindStatusCondition(c.Status.Conditions, "EvictionSlowed"); says != nil {
						got[name] = says.Message
					}
				}
				want := map[string]string{}
				if s.says != "" {
					want["west"] = s.says
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
				if writes != s.writes {
					t.Errorf("step %d: %d writes, want %d", i, writes, s.writes)
				}
			}
		})
	}
}
