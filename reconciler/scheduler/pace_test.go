package scheduler

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestPace says how long evictions wait for their turn.
func TestPace(t *testing.T) {
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
			p := newPace(tc.rate, clock)
			if wait := p.wait(req(9), placement.Decision{}); wait != 0 {
				t.Errorf("what moves nothing waits %s", wait)
			}
			var got []time.Duration
			for i := range tc.want {
				got = append(got, p.wait(req(i), evicts))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			last := len(tc.want) - 1
			if again := p.wait(req(last), evicts); tc.want[last] > 0 && again != tc.want[last] {
				t.Errorf("asked again before its turn, it waits %s", again)
			}
			clock.SetTime(start.Add(tc.want[last]))
			if wait := p.wait(req(last), evicts); wait != 0 {
				t.Errorf("at its turn it waits %s", wait)
			}
		})
	}
}
