package ratelimit

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestEachHasALimitOfItsOwn(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	l := New(clock)
	allowed := func(name string) (n int) {
		for l.Allows(name) {
			n++
		}
		return n
	}
	if a, b := allowed("a"), allowed("b"); a != asksAtOnce || b != asksAtOnce {
		t.Errorf("at once a may ask %d times and b %d times, want %d each", a, b, asksAtOnce)
	}
	clock.SetTime(clock.Now().Add(RetryAfter * time.Second))
	if got := allowed("a"); got != 1 {
		t.Errorf("%d more after %d s, want 1", got, RetryAfter)
	}
}
