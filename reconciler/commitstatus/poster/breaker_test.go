package poster

import (
	"testing"
	"time"
)

func TestBreakers(t *testing.T) {
	l := newBreakers(5*time.Second, time.Minute)
	a, b := route{namespace: "team", host: "a"}, route{namespace: "team", host: "b"}
	acquire := func(to route, after, want time.Duration) {
		t.Helper()
		got, open := l.acquire(to, start.Add(after))
		if got != want {
			t.Errorf("acquire %v after %s: stay away for %s, want %s", to, after, got, want)
		}
		if until := start.Add(after + want); want > retryBusy != open.Equal(until) {
			t.Errorf("acquire %v after %s: open until %s, want %s", to, after, open, until)
		}
	}
	acquire(a, 0, 0)
	acquire(a, 0, retryBusy)
	acquire(b, 0, 0)
	l.release(a)
	l.release(b)

	pauses := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	for i, want := range pauses {
		if got := l.failed(a, start, 0); got != want {
			t.Errorf("pause after fault %d = %s, want %s", i+1, got, want)
		}
	}
	acquire(a, 0, time.Minute)
	acquire(a, 59*time.Second, time.Second)
	acquire(b, 0, 0)
	acquire(route{namespace: "other", host: "a"}, 0, 0)
	acquire(route{namespace: "team", host: "a", comments: true}, 0, 0)
	l.release(route{namespace: "team", host: "a", comments: true})
	acquire(a, time.Minute, 0)
	l.release(a)

	if got := l.failed(a, start, time.Hour); got != time.Hour {
		t.Errorf("pause = %s, want what the forge asked for", got)
	}
	l.succeeded(a)
	acquire(a, 0, 0)
	l.release(a)
	if got := l.failed(a, start, 0); got != 5*time.Second {
		t.Errorf("pause after the forge had worked = %s, want the first one", got)
	}
	l.succeeded(a)
	acquire(a, 0, 0)
	for _, to := range []route{a, b, {namespace: "other", host: "a"}} {
		l.release(to)
	}
	if len(l.byRoute) != 0 {
		t.Errorf("%d breakers are remembered that have no faults, want none", len(l.byRoute))
	}
}
