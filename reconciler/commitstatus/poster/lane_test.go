package poster

import (
	"testing"
	"time"
)

func TestLanes(t *testing.T) {
	l := newLanes(5*time.Second, time.Minute)
	a, b := route{"team", "a"}, route{"team", "b"}
	enter := func(to route, after, want time.Duration) {
		t.Helper()
		got, closed := l.enter(to, start.Add(after))
		if got != want {
			t.Errorf("enter %s after %s: stay away for %s, want %s", to, after, got, want)
		}
		if until := start.Add(after + want); want > retryBusy != closed.Equal(until) {
			t.Errorf("enter %s after %s: closed until %s, want %s", to, after, closed, until)
		}
	}
	enter(a, 0, 0)
	enter(a, 0, retryBusy)
	enter(b, 0, 0)
	l.leave(a)
	l.leave(b)

	pauses := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	for i, want := range pauses {
		if got := l.fails(a, start, 0); got != want {
			t.Errorf("pause after fault %d = %s, want %s", i+1, got, want)
		}
	}
	enter(a, 0, time.Minute)
	enter(a, 59*time.Second, time.Second)
	enter(b, 0, 0)
	enter(route{"other", "a"}, 0, 0)
	enter(a, time.Minute, 0)
	l.leave(a)

	if got := l.fails(a, start, time.Hour); got != time.Hour {
		t.Errorf("pause = %s, want what the forge asked for", got)
	}
	l.works(a)
	enter(a, 0, 0)
	l.leave(a)
	if got := l.fails(a, start, 0); got != 5*time.Second {
		t.Errorf("pause after the forge had worked = %s, want the first one", got)
	}
	l.works(a)
	enter(a, 0, 0)
	for _, to := range []route{a, b, {"other", "a"}} {
		l.leave(to)
	}
	if len(l.byRoute) != 0 {
		t.Errorf("%d lanes are remembered that have no faults, want none", len(l.byRoute))
	}
}
