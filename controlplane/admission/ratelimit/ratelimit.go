package ratelimit

import (
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// asksAtOnce and asksPerSecond are how many certificates one agent or token may
	// ask for: a new one every few weeks, and some tries.
	asksAtOnce    = 10
	asksPerSecond = 0.1
	// RetryAfter is when the next one is due, in seconds.
	RetryAfter = 10
	// askers is how many of them are remembered.
	askers = 4096
)

// Limit limits how often certificates are asked for. Use New; it is safe for use by several
// goroutines.
type Limit struct {
	limits *lru.Cache
	clock  clock.PassiveClock
}

// New returns a Limit that nobody has used yet.
func New(clk clock.PassiveClock) *Limit { return &Limit{limits: lru.New(askers), clock: clk} }

// Allows reports whether a user may ask now, and counts it.
func (l *Limit) Allows(name string) bool {
	limit, known := l.limits.Get(name)
	if !known {
		limit = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(asksPerSecond, asksAtOnce, l.clock)
		l.limits.Add(name, limit)
	}
	limiter, ok := limit.(flowcontrol.PassiveRateLimiter)
	return ok && limiter.TryAccept()
}
