package poster

import (
	"testing"
	"time"
)

func TestLanes(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLanes(5*time.Second, time.Minute)
	enter := func(host string, after, want time.Duration) {
		t.Helper()
		if got := l.enter(host, start.Add(after)); got != want {
			t.Errorf("enter %s after %s: stay away for %s, want %s", host, after, got, want)
		}
	}
	enter("a", 0, 0)
	enter("a", 0, retryBusy)
	enter("b", 0, 0)
	l.leave("a")
	l.leave("b")

	pauses := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	for i, want := range pauses {
		if got := l.fails("a", start, 0); got != want {
			t.Errorf("pause after fault %d = %s, want %s", i+1, got, want)
		}
	}
	enter("a", 0, time.Minute)
	enter("a", 59*time.Second, time.Second)
	enter("b", 0, 0)
	enter("a", time.Minute, 0)
	l.leave("a")

	if got := l.fails("a", start, time.Hour); got != time.Hour {
		t.Errorf("pause = %s, want what the forge asked for", got)
	}
	l.works("a")
	enter("a", 0, 0)
	l.leave("a")
	if got := l.fails("a", start, 0); got != 5*time.Second {
		t.Errorf("pause after the forge had worked = %s, want the first one", got)
	}
}
