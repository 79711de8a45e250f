package timerslack

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// Resting is how late timers may be while nothing is asked of a server: what still
	// runs then are looks at what has not changed, and wakings for those cost all the rest
	// does.
	Resting = 250 * time.Millisecond
	// calm is for how long nothing was asked when a server is at rest.
	calm = 3 * time.Second
)

// Rest gives the timers of a process Resting while it has nothing to do, and Usual as soon
// as it has. Nil does nothing.
type Rest struct {
	clock clock.Clock
	set   func(time.Duration)

	busy    atomic.Bool // since the last look
	resting atomic.Bool
	woken   chan struct{}
}

// NewRest returns a process's rest. It is nil where the slack is not ours to say: see Set,
// which comes before.
func NewRest(c clock.Clock) *Rest {
	if now, err := get(); err != nil || now != Usual {
		return nil
	}
	return newRest(c, func(slack time.Duration) { _ = apply(slack) })
}

func newRest(c clock.Clock, set func(time.Duration)) *Rest {
	return &Rest{clock: c, set: set, woken: make(chan struct{}, 1)}
}

// Busy ends the rest, if there is one: it is for the beginning of what somebody waits for,
// may be called from anywhere, and does not wait.
func (r *Rest) Busy() {
	if r == nil {
		return
	}
	r.busy.Store(true)
	if !r.resting.Load() {
		return
	}
	select {
	case r.woken <- struct{}{}:
	default: // somebody else was first
	}
}

// Run lets the process rest whenever it was not busy for long enough, until ctx is done. It
// then leaves the timers with Usual. At rest it has no timer of its own.
func (r *Rest) Run(ctx context.Context) {
	if r == nil {
		return
	}
	for {
		timer := r.clock.NewTimer(calm)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		r.resting.Store(true) // before the look: who is busy from here on wakes it
		if !r.busy.Swap(false) {
			r.sleep(ctx)
		}
		r.resting.Store(false)
	}
}

func (r *Rest) sleep(ctx context.Context) {
	r.set(Resting)
	defer r.set(Usual)
	select {
	case <-ctx.Done():
	case <-r.woken:
	}
}
