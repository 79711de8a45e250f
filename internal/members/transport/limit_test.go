package transport

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// first is how many a limiter of these tests lets through at first.
const first = 8

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
			steps: []step{{enter: 20}}, busy: first, limit: first,
		},
		"a place is handed over": {
			steps: []step{{enter: 10}, {release: 1}}, busy: first, limit: first,
		},
		"a full round of good answers makes room for one more": {
			steps: []step{{enter: 40}, {release: 9}}, busy: first + 1, limit: first + 1,
		},
		"good answers while there is room make none": {
			steps: []step{{enter: 4}, {release: 4}}, busy: 0, limit: first,
		},
		"an answer that says too many halves the limit": {
			steps: []step{{enter: 20}, {release: 1, crowded: true}}, busy: first - 1, limit: first / 2,
		},
		"one crowded moment counts once": {
			steps: []step{{enter: 20}, {release: 5, crowded: true}}, busy: first / 2, limit: first / 2,
		},
		"crowded moments add up, but one may always go": {
			steps: []step{
				{enter: 20}, {release: 5, crowded: true, wait: 2 * time.Second}, {release: 4, crowded: true, wait: 2 * time.Second},
				{release: 2, crowded: true, wait: 2 * time.Second}, {release: 1, crowded: true},
			}, busy: 1, limit: 1,
		},
		"nobody new goes before the time that the member asks for is over": {
			steps: []step{{enter: 1}, {release: 1, crowded: true, after: 5 * time.Second}, {enter: 3, wait: 4 * time.Second}},
			busy:  0, limit: first / 2,
		},
		"after that they go": {
			steps: []step{{enter: 1}, {release: 1, crowded: true, after: 5 * time.Second}, {enter: 3, wait: 6 * time.Second}},
			busy:  3, limit: first / 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(clock.RealClock{}, first, 64)
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
		l := newLimiter(clock.RealClock{}, first, 64)
		for range first {
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
		for range first {
			l.release(verdict{})
		}
		if l.busy != 0 || l.waiting.Len() != 0 {
			t.Errorf("busy = %d, waiting = %d, want nobody", l.busy, l.waiting.Len())
		}
	})
}

func TestLimiterSendsAwayWhoWouldWaitInVain(t *testing.T) {
	const s = time.Second
	type answer struct {
		err   error
		after time.Duration
	}
	full := func(t *testing.T, l *limiter) {
		for range first {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		before func(t *testing.T, l *limiter)
		want   answer
	}{
		"while answers come one waits": {func(t *testing.T, l *limiter) {
			full(t, l)
			time.AfterFunc(4*s, func() { l.release(verdict{crowded: true}) }) // half of them may go from now on
			for _, after := range []time.Duration{8 * s, 8 * s, 8 * s, 12 * s} {
				time.AfterFunc(after, func() { l.release(verdict{}) })
			}
		}, answer{nil, 12 * s}},
		"while none comes, for a little": {full, answer{ErrBusy, timeout}},
		"not where the last one never came": {func(t *testing.T, l *limiter) {
			full(t, l)
			l.release(verdict{crowded: true, hung: true})
		}, answer{ErrBusy, 0}},
		"not where the member asks to be left alone for long": {func(t *testing.T, l *limiter) {
			full(t, l)
			l.release(verdict{crowded: true, retryAfter: time.Minute})
		}, answer{ErrBusy, 0}},
		"one that answers again is asked again": {func(t *testing.T, l *limiter) {
			full(t, l)
			l.release(verdict{crowded: true, hung: true})
			for range first - 1 {
				l.release(verdict{})
			}
		}, answer{nil, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(clock.RealClock{}, first, first)
				tc.before(t, l)
				start := time.Now()
				got := answer{err: l.acquire(t.Context()), after: time.Since(start)}
				if got != tc.want {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestKindOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/a/configmaps/c": "/configmaps",
		"/api/v1/configmaps":                "/configmaps",
		"/api/v1/namespaces/a":              "/namespaces",
		"/api/v1/namespaces":                "/namespaces",
		"/api/v1":                           "/",
		"/api":                              "/",
		"/apis":                             "apis",
		"/apis/apps/v1":                     "apps/",
		"/apis/apps":                        "apps/",
		"/apis/apps/v1/namespaces/a/deployments/": "apps/deployments",
		"/apis/apps/v1/deployments":               "apps/deployments",
		"/apis/x.io/v1/things/t/status":           "x.io/things",
		"/version":                                "version",
		"/":                                       "",
		"":                                        "",
	} {
		if got := kindOf(path); got != want {
			t.Errorf("kindOf(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestOneKindThatHangsTakesNoPlaceFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traffic := newTraffic(clock.RealClock{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 100 { // of which nobody gives a place back
			go func() { _, _ = traffic.acquire(ctx, "/apis/dead.io/v1/things") }()
		}
		synctest.Wait()
		for i := range 1000 {
			release, err := traffic.acquire(ctx, "/api/v1/configmaps")
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			release(verdict{})
		}
	})
}

func TestKindsThatNobodyAsksForAreForgotten(t *testing.T) {
	traffic := newTraffic(clock.RealClock{})
	kept, err := traffic.acquire(t.Context(), "/apis/kept.io/v1/things")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 * mostKinds {
		release, err := traffic.acquire(t.Context(), fmt.Sprintf("/apis/g%d.io/v1/things", i))
		if err != nil {
			t.Fatal(err)
		}
		release(verdict{})
	}
	if n := len(traffic.kinds); n > mostKinds || traffic.kinds["kept.io/things"] == nil {
		t.Errorf("%d kinds are remembered", n)
	}
	kept(verdict{})
}
