// Package sleepdetector decides whether the process has slept, as it was stopped, or the machine was: what it knew of others is old then.
//
// In go the times at which somebody looks, and how long it must not have run; out comes when it last woke. It knows nothing of
// clusters, and starts nothing by itself.
package sleepdetector

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ticks is how often it is noted that the process runs while it would count as asleep.
const ticks = 3

// Watch notices that the process has slept. What was not heard then says nothing, and what
// was known before may be over: it is as after a start. Use New.
type Watch struct {
	clock  clock.WithTicker
	asleep time.Duration

	mu   sync.Mutex
	last time.Time     // when the process was last seen to run; zero: nobody looks
	woke time.Time     // when it last woke; zero: it has not slept
	next chan struct{} // closed when it wakes
}

// New returns a watch that nobody looks at yet, so that it has not slept: see Begin and Run. A process of which nothing was
// seen for longer than asleep did not run meanwhile: it was stopped, or the whole machine was.
func New(c clock.WithTicker, asleep time.Duration) *Watch {
	return &Watch{clock: c, asleep: asleep, next: make(chan struct{})}
}

// Run looks until ctx ends.
func (a *Watch) Run(ctx context.Context) {
	a.Begin()
	tick := a.clock.NewTicker(a.asleep / ticks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
			a.Since()
		}
	}
}

// Begin has the process looked at from now on.
func (a *Watch) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = a.clock.Now()
}

// Since returns when the process last woke, zero if it has not slept, and what is closed
// when it next does. It is known at once: whoever asks may be ahead of the tick.
func (a *Watch) Since() (woke time.Time, next <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last.IsZero() {
		return a.woke, a.next
	}
	now := a.clock.Now()
	if jump(a.last, now) > a.asleep {
		a.woke = now
		close(a.next)
		a.next = make(chan struct{})
	}
	a.last = now
	return a.woke, a.next
}

// Woke returns when the process last woke, zero if it has not slept.
func (a *Watch) Woke() time.Time {
	woke, _ := a.Since()
	return woke
}

// jump returns how much time has passed: by the clock that runs while the process is stopped, or
// by the one on the wall, which runs while the machine is.
func jump(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
