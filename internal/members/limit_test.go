package members

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func TestLimiter(t *testing.T) {
	type step struct {
		enter   int           // how many ask for a place
		release int           // how many return theirs
		crowded bool          // what their answers say
		after   time.Duration // what their answers ask for
		wait    time.Duration
	}
	cases := map[string]struct {
		steps []step
		busy  int
		limit int
	}{
		"the first few go at once, the others wait": {
			steps: []step{{enter: 20}}, busy: firstInFlight, limit: firstInFlight,
		},
		"a place is handed over": {
			steps: []step{{enter: 10}, {release: 1}}, busy: firstInFlight, limit: firstInFlight,
		},
		"a full round of good answers makes room for one more": {
			steps: []step{{enter: 40}, {release: 9}}, busy: firstInFlight + 1, limit: firstInFlight + 1,
		},
		"good answers while there is room make none": {
			steps: []step{{enter: 4}, {release: 4}}, busy: 0, limit: firstInFlight,
		},
		"an answer that says too many halves the limit": {
			steps: []step{{enter: 20}, {release: 1, crowded: true}}, busy: firstInFlight - 1, limit: firstInFlight / 2,
		},
		"one crowded moment counts once": {
			steps: []step{{enter: 20}, {release: 5, crowded: true}}, busy: firstInFlight / 2, limit: firstInFlight / 2,
		},
		"crowded moments add up, but one may always go": {
			steps: []step{
				{enter: 20}, {release: 5, crowded: true, wait: 2 * time.Second}, {release: 4, crowded: true, wait: 2 * time.Second},
				{release: 2, crowded: true, wait: 2 * time.Second}, {release: 1, crowded: true},
			}, busy: 1, limit: 1,
		},
		"nobody new goes before the time that the member asks for is over": {
			steps: []step{{enter: 1}, {release: 1, crowded: true, after: 5 * time.Second}, {enter: 3, wait: 4 * time.Second}},
			busy:  0, limit: firstInFlight / 2,
		},
		"after that they go": {
			steps: []step{{enter: 1}, {release: 1, crowded: true, after: 5 * time.Second}, {enter: 3, wait: 6 * time.Second}},
			busy:  3, limit: firstInFlight / 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(clock.RealClock{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for _, s := range tc.steps {
					for range s.enter {
						go func() { _ = l.acquire(ctx) }()
					}
					synctest.Wait()
					for range s.release {
						l.release(verdict{crowded: s.crowded, retryAfter: s.after})
					}
					pause(s.wait)
					synctest.Wait()
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				if diff := cmp.Diff([]int{tc.busy, tc.limit}, []int{l.busy, int(l.limit)}); diff != "" {
					t.Errorf("busy and limit (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// pause lets the bubble's time go by.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func TestLimiterForgetsThoseWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(clock.RealClock{})
		for range firstInFlight {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- l.acquire(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; err == nil {
			t.Error("got a place after giving up")
		}
		for range firstInFlight {
			l.release(verdict{})
		}
		if l.busy != 0 || l.waiting.Len() != 0 {
			t.Errorf("busy = %d, waiting = %d, want nobody", l.busy, l.waiting.Len())
		}
	})
}
