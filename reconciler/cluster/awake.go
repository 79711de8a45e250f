package cluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// wakeTick is how often it is noted that the process runs, and asleep how long it was
	// not when it did not run meanwhile: it was stopped, or the whole machine was.
	wakeTick = 5 * time.Second
	asleep   = 15 * time.Second
)

// awake notices that the process has slept. What was not heard then says nothing, and what
// was known before may be over: it is as after a start.
type awake struct {
	clock clock.WithTicker

	mu   sync.Mutex
	last time.Time     // when the process was last seen to run; zero: nobody looks
	woke time.Time     // when it last woke; zero: it has not slept
	next chan struct{} // closed when it wakes
}

func newAwake(c clock.WithTicker) *awake {
	return &awake{clock: c, next: make(chan struct{})}
}

// run looks until ctx ends.
func (a *awake) run(ctx context.Context) {
	a.begin()
	tick := a.clock.NewTicker(wakeTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
			a.since()
		}
	}
}

// begin has the process looked at from now on.
func (a *awake) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = a.clock.Now()
}

// since returns when the process last woke, zero if it has not slept, and what is closed
// when it next does. It is known at once: whoever asks may be ahead of the tick.
func (a *awake) since() (woke time.Time, next <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last.IsZero() {
		return a.woke, a.next
	}
	now := a.clock.Now()
	if jump(a.last, now) > asleep {
		a.woke = now
		close(a.next)
		a.next = make(chan struct{})
	}
	a.last = now
	return a.woke, a.next
}

// jump returns how much time has passed: by the clock that runs while the process is stopped, or
// by the one on the wall, which runs while the machine is.
func jump(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
