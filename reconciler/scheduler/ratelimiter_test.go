package scheduler

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestRate: how long evictions wait for their turn.
func TestRate(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	req := func(n int) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(n)}}
	}
	evicts := placement.Decision{Evicts: []string{"west"}}
	cases := map[string]struct {
		rate float64
		want []time.Duration // of three bindings that come at once
	}{
		"as many as there are":  {want: []time.Duration{0, 0, 0}},
		"one in two seconds":    {rate: 0.5, want: []time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"all but switched off":  {rate: -1, want: []time.Duration{30 * time.Minute, time.Hour, 90 * time.Minute}},
		"a hundred in a second": {rate: 100, want: []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			p := newRateLimiter(tc.rate, clock)
			if wait := p.wait(t.Context(), req(9), "Deployment", placement.Decision{}); wait != 0 {
				t.Errorf("what moves nothing waits %s", wait)
			}
			var got []time.Duration
			for i := range tc.want {
				got = append(got, p.wait(t.Context(), req(i), "Deployment", evicts))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			last := len(tc.want) - 1
			if again := p.wait(t.Context(), req(last), "Deployment", evicts); tc.want[last] > 0 && again != tc.want[last] {
				t.Errorf("asked again before its turn, it waits %s", again)
			}
			clock.SetTime(start.Add(tc.want[last]))
			if wait := p.wait(t.Context(), req(last), "Deployment", evicts); wait != 0 {
				t.Errorf("at its turn it waits %s", wait)
			}
		})
	}
}

// TestTheRateAdapts: evictions are further apart while what was moved does not become healthy, also for those that wait
// already. Once it does, they come as before, and those that wait are enqueued.
func TestTheRateAdapts(t *testing.T) {
	well, ill := failover.Outcomes{Healthy: 20}, failover.Outcomes{Ill: 20}
	evicts := placement.Decision{Evicts: []string{"west"}}
	type step struct {
		after    time.Duration
		outcomes failover.Outcomes
		wants    []time.Duration // how long each of the bindings 0, 1, … waits then
		woken    []string
	}
	for name, tc := range map[string]struct {
		rate  float64
		steps []step
	}{
		"at a rate": {rate: 1, steps: []step{
			{outcomes: well, wants: []time.Duration{0, time.Second, 2 * time.Second}},
			{after: time.Second, outcomes: ill, wants: []time.Duration{20 * time.Second, 0, 10 * time.Second}}, // 0 is another move, and the last in the line
			{after: 4 * time.Second, outcomes: ill, wants: []time.Duration{16 * time.Second, 26 * time.Second, 6 * time.Second}},
			{after: time.Second, outcomes: well, wants: []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond, 500 * time.Millisecond}, woken: []string{"0", "1", "2"}},
		}},
		"without one": {steps: []step{
			{outcomes: well, wants: []time.Duration{0, 0, 0}},
			{after: time.Second, outcomes: ill, wants: []time.Duration{0, time.Second, 2 * time.Second}},
			{after: 500 * time.Millisecond, outcomes: well, wants: []time.Duration{2500 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond}}, // it was looked just now
			{after: 500 * time.Millisecond, outcomes: well, wants: []time.Duration{0, 0, 0}, woken: []string{"0", "1", "2"}},
			{after: time.Second, outcomes: ill, wants: []time.Duration{0, time.Second, 2 * time.Second}},
		}},
		"all but switched off": {rate: -1, steps: []step{
			{outcomes: ill, wants: []time.Duration{30 * time.Minute}},
			{after: 10 * time.Minute, outcomes: well, wants: []time.Duration{20 * time.Minute}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
			p := newRateLimiter(tc.rate, clock)
			var outcomes failover.Outcomes
			var woken []string
			p.outcomes = func(context.Context) failover.Outcomes { return outcomes }
			p.wake = func(reqs []reconcile.Request) {
				for _, r := range reqs {
					woken = append(woken, r.Name)
				}
				slices.Sort(woken)
			}
			for i, s := range tc.steps {
				clock.SetTime(clock.Now().Add(s.after))
				outcomes, woken = s.outcomes, nil
				var got []time.Duration
				for n := range s.wants {
					req := reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(n)}}
					got = append(got, p.wait(t.Context(), req, "Deployment", evicts))
				}
				if diff := cmp.Diff(s.wants, got); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
				if diff := cmp.Diff(s.woken, woken); diff != "" {
					t.Errorf("step %d: woken (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
