package members

import (
	"container/list"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Limits of the requests in flight to one member.
const (
	firstInFlight = 8
	mostInFlight  = 64
	// shrinkPause is how long the limit stays after it was halved, so that the
	// answers of one crowded moment count once.
	shrinkPause = time.Second
	// longestPause bounds what a member may ask for with Retry-After.
	longestPause = time.Minute
)

// limiter bounds the requests in flight and adapts the bound: one more after a
// full round of good answers, half of it when the member says that it is too
// many or does not answer in time.
type limiter struct {
	clock clock.WithTicker

	mu          sync.Mutex
	limit       float64
	busy        int
	waiting     list.List // of chan struct{}, closed when a place is handed over
	pausedUntil time.Time
	lastShrink  time.Time
}

// verdict is what an answer says about the load of the member.
type verdict struct {
	crowded    bool
	retryAfter time.Duration
}

func newLimiter(c clock.WithTicker) *limiter {
	return &limiter{clock: c, limit: firstInFlight}
}

// acquire waits for a place among the requests in flight.
func (l *limiter) acquire(ctx context.Context) error {
	for {
		place, pause := l.enter()
		if place == nil && pause == 0 {
			return nil
		}
		if pause > 0 {
			if err := l.sleep(ctx, pause); err != nil {
				return err
			}
			continue
		}
		select {
		case <-place.Value.(chan struct{}):
			return nil
		case <-ctx.Done():
			l.leave(place)
			return ctx.Err()
		}
	}
}

// enter takes a place, or a position in the line, or says how long nobody may.
func (l *limiter) enter() (*list.Element, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pause := l.pausedUntil.Sub(l.clock.Now()); pause > 0 {
		return nil, pause
	}
	if l.waiting.Len() == 0 && l.busy < int(l.limit) {
		l.busy++
		return nil, 0
	}
	return l.waiting.PushBack(make(chan struct{})), 0
}

// leave gives up a position in the line, or the place it was just given.
func (l *limiter) leave(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-place.Value.(chan struct{}):
		l.busy--
		l.handOver()
	default:
		l.waiting.Remove(place)
	}
}

func (l *limiter) sleep(ctx context.Context, d time.Duration) error {
	timer := l.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release returns a place and learns from the answer.
func (l *limiter) release(v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.busy >= int(l.limit)
	l.busy--
	now := l.clock.Now()
	switch {
	case v.crowded && now.Sub(l.lastShrink) >= shrinkPause:
		l.limit = max(1, l.limit/2)
		l.lastShrink = now
	case !v.crowded && full:
		l.limit = min(mostInFlight, l.limit+1/l.limit)
	}
	if until := now.Add(min(v.retryAfter, longestPause)); v.retryAfter > 0 && until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
	l.handOver()
}

func (l *limiter) handOver() {
	for l.busy < int(l.limit) && l.waiting.Len() > 0 {
		l.busy++
		close(l.waiting.Remove(l.waiting.Front()).(chan struct{}))
	}
}
