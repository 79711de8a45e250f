package poster

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// breakers are circuit breakers, one per namespace and forge: what one tenant gets from a
// forge, such as a rate limit or an error of its own making, says nothing about others. Each
// lets one post through at a time. It is safe for use by several goroutines.
type breakers struct {
	mu      sync.Mutex
	byRoute map[route]*breaker
	faults  workqueue.TypedRateLimiter[route]
}

// route is a namespace and the forge that its posts go to.
type route struct {
	namespace, host string
	// comments have a route of their own: their errors delay no status.
	comments bool
}

// breaker is the state of one route.
type breaker struct {
	busy  bool
	until time.Time // open until then: nothing is let through
}

// retryBusy is when to try again while another post on the route is in flight.
const retryBusy = 100 * time.Millisecond

// newBreakers opens a breaker for the first pause after a fault, twice as long after each
// that follows, and for the last at most.
func newBreakers(first, last time.Duration) *breakers {
	return &breakers{byRoute: map[route]*breaker{}, faults: workqueue.NewTypedItemExponentialFailureRateLimiter[route](first, last)}
}

func (b *breakers) of(to route) *breaker {
	if b.byRoute[to] == nil {
		b.byRoute[to] = &breaker{}
	}
	return b.byRoute[to]
}

// acquire takes the route. It returns how long to wait instead if another post is
// in flight or the breaker is open, and until when it is open. After success, release must be called.
func (b *breakers) acquire(to route, now time.Time) (wait time.Duration, open time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of(to)
	switch {
	case now.Before(own.until):
		return own.until.Sub(now), own.until
	case own.busy:
		return retryBusy, time.Time{}
	}
	own.busy = true
	return 0, time.Time{}
}

// release returns the route. A route without faults is forgotten.
func (b *breakers) release(to route) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byRoute[to].busy = false
	if b.faults.NumRequeues(to) == 0 {
		delete(b.byRoute, to)
	}
}

// succeeded records that the forge answered.
func (b *breakers) succeeded(to route) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults.Forget(to)
	b.of(to).until = time.Time{}
}

// failed records a fault of the forge and returns how long its breaker is open: as long as
// the forge asks for at least.
func (b *breakers) failed(to route, now time.Time, asked time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	pause := max(b.faults.When(to), asked)
	b.of(to).until = now.Add(pause)
	return pause
}
