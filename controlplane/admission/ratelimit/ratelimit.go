package ratelimit

import (
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// asksAtOnce and asksPerSecond are how many certificates one agent or token may ask
	// for. An agent needs a new one every few weeks, and may need some attempts.
	asksAtOnce    = 10
	asksPerSecond = 0.1
	// RetryAfter is after how many seconds a user may ask again.
	RetryAfter = 10
	// askers is how many users are remembered.
	askers = 4096
)

// Limit limits how often certificates are asked for. Use New; it is safe for use by several
// goroutines.
type Limit struct {
	limits *lru.Cache
	clock  clock.PassiveClock
}

// New returns an unused Limit.
func New(clk clock.PassiveClock) *Limit { return &Limit{limits: lru.New(askers), clock: clk} }

// Allows reports whether a user may ask now. It counts each call that it allows.
func (l *Limit) Allows(name string) bool {
	limit, known := l.limits.Get(name)
	if !known {
		limit = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(asksPerSecond, asksAtOnce, l.clock)
		l.limits.Add(name, limit)
	}
	limiter, ok := limit.(flowcontrol.PassiveRateLimiter)
	return ok && limiter.TryAccept()
}
