package proxy

import (
	"context"
	"sync"
)

// mostRequests bounds the requests to one cluster that are in flight, watches and
// terminals among them.
const mostRequests = 2000

// traffic is the set of requests in flight over one link. The zero value is empty.
type traffic struct {
	mu    sync.Mutex
	under map[*struct{ byte }]context.CancelFunc
	ended bool
}

// begin adds a request. Its context is cancelled with the traffic, or by done, which must
// be called. It returns false where there are too many, or none may begin.
func (t *traffic) begin(ctx context.Context) (during context.Context, done func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || len(t.under) >= mostRequests {
		return ctx, func() {}, false
	}
	if t.under == nil {
		t.under = map[*struct{ byte }]context.CancelFunc{}
	}
	during, cancel := context.WithCancel(ctx)
	key := new(struct{ byte })
	t.under[key] = cancel
	return during, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.under, key)
	}, true
}

// end cancels all requests, and refuses new ones.
func (t *traffic) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, cancel := range t.under {
		cancel()
	}
}

// over reports whether the traffic has ended.
func (t *traffic) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// count returns how many requests are in flight.
func (t *traffic) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.under)
}
