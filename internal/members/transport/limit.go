package transport

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Limits of the requests in flight to one member: those about one kind, and all
// together.
const (
	firstOfKind   = 4
	mostOfKind    = 48
	firstInFlight = 16
	mostInFlight  = 64
	// shrinkPause is how long the limit stays after it was halved, so that the
	// answers of one crowded moment count once.
	shrinkPause = time.Second
	// longestPause bounds what a member may ask for with Retry-After.
	longestPause = time.Minute
	// timeout is how long somebody waits for a place while no answer comes. Who
	// would wait longer is sent away, to look after what does get an answer.
	timeout = 5 * time.Second
)

// ErrBusy says that a member leaves too many requests of this kind unanswered to
// be asked another one now. Requests of other kinds may go through.
var ErrBusy = errors.New("the member does not answer requests of this kind: waiting for those that are on their way")

// limiter bounds the requests in flight and adapts the bound: one more after a
// full round of good answers, half of it when the member says that it is too
// many or does not answer in time.
type limiter struct {
	clock clock.WithTicker
	most  float64

	mu          sync.Mutex
	limit       float64
	busy        int
	waiting     list.List // of chan struct{}, closed when a place is handed over
	pausedUntil time.Time
	lastShrink  time.Time
	moved       time.Time // when an answer came, or the first request went
	hung        bool      // the last one had no answer
}

// verdict is what an answer says about the load of the member.
type verdict struct {
	nothing    bool // nobody waited for it
	crowded    bool
	hung       bool // there was none in time
	whole      bool // it is about all requests, not those of one kind
	retryAfter time.Duration
}

func newLimiter(c clock.WithTicker, first, most int) *limiter {
	return &limiter{clock: c, limit: float64(first), most: float64(most)}
}

// acquire waits for a place among the requests in flight. It returns ErrBusy
// where there is none and no answer comes that would make room.
func (l *limiter) acquire(ctx context.Context) error {
	for {
		place, pause := l.enter()
		switch {
		case pause > timeout:
			return ErrBusy
		case pause > 0:
			if err := l.sleep(ctx, pause); err != nil {
				return err
			}
		case place == nil:
			return nil
		default:
			return l.queue(ctx, place)
		}
	}
}

// queue waits in the line until a place is handed over.
func (l *limiter) queue(ctx context.Context, place *list.Element) error {
	for {
		timer := l.clock.NewTimer(l.hope())
		select {
		case <-place.Value.(chan struct{}):
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			l.leave(place)
			return ctx.Err()
		case <-timer.C():
			if l.hope() <= 0 {
				l.leave(place)
				return ErrBusy
			}
		}
	}
}

// hope returns how long it makes sense to wait for an answer that makes room.
func (l *limiter) hope() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hung {
		return 0
	}
	return max(0, l.moved.Add(timeout).Sub(l.clock.Now()))
}

// enter takes a place, or a position in the line, or says how long nobody may.
func (l *limiter) enter() (*list.Element, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if pause := l.pausedUntil.Sub(now); pause > 0 {
		return nil, pause
	}
	if l.waiting.Len() == 0 && l.busy < int(l.limit) {
		if l.busy == 0 {
			l.moved = now
		}
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
	if !v.nothing {
		l.learn(v, full)
	}
	l.handOver()
}

func (l *limiter) learn(v verdict, full bool) {
	now := l.clock.Now()
	if l.hung = v.hung; !v.hung {
		l.moved = now
	}
	switch {
	case v.crowded && now.Sub(l.lastShrink) >= shrinkPause:
		l.limit = max(1, l.limit/2)
		l.lastShrink = now
	case !v.crowded && full:
		l.limit = min(l.most, l.limit+1/l.limit)
	}
	if until := now.Add(min(v.retryAfter, longestPause)); v.retryAfter > 0 && until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
}

func (l *limiter) handOver() {
	for l.busy < int(l.limit) && l.waiting.Len() > 0 {
		l.busy++
		close(l.waiting.Remove(l.waiting.Front()).(chan struct{}))
	}
}

// idle reports whether nobody has or wants a place, and nothing bad was learned.
func (l *limiter) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy == 0 && l.waiting.Len() == 0 && !l.hung && !l.pausedUntil.After(l.clock.Now())
}
