package hubconn

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/flotilla-io/flotilla/internal/hub"
)

// listener records whether a hub that is there is trusted or held, see Options.Meet.
type listener struct {
	mu    sync.Mutex
	open  bool          // the hub is there, and trusted
	held  error         // why the hub, though there, is not trusted; nil otherwise
	since time.Time     // since when it is open, or was last
	whole chan struct{} // closed while open
	holds int
	under map[*context.CancelFunc]bool // requests that end when the hub is held
}

func newListener() *listener {
	return &listener{whole: make(chan struct{}), under: map[*context.CancelFunc]bool{}}
}

// Held is why some requests are refused although the hub is there: an error that matches
// hub.ErrHeld; nil if none are.
func (e *listener) Held() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held
}

// Since is when the hub was found to be there, and not held, after it was away or held.
func (e *listener) Since() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.since
}

// Whole is closed while the hub is there and no request is refused.
func (e *listener) Whole() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.whole
}

// HoldCount returns how often the hub was found to be held. Resource versions that were read
// before the last time no longer count.
func (e *listener) HoldCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.holds
}

// hear records what a probe found, and when: nil, that the hub is away, or that it is held.
func (e *listener) hear(state error, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was, wasOpen := e.held, e.open
	if e.held = nil; errors.Is(state, hub.ErrHeld) {
		e.held = state
	}
	switch e.open = state == nil; {
	case e.open && !wasOpen:
		close(e.whole)
		e.since = now
	case !e.open && wasOpen:
		e.whole = make(chan struct{})
	}
	if e.held != nil && was == nil {
		e.holds++
		for end := range e.under {
			(*end)()
		}
		clear(e.under)
	}
}

// pass returns a context for a request that is cancelled when the hub is held, and a
// function to call when the request is over. Errors: Held, if the request must not be sent.
func (e *listener) pass(ctx context.Context) (_ context.Context, leave func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held != nil {
		return nil, nil, e.held
	}
	ctx, end := context.WithCancel(ctx)
	e.under[&end] = true
	return ctx, func() {
		e.mu.Lock()
		delete(e.under, &end)
		e.mu.Unlock()
		end()
	}, nil
}

// picked reports whether a request is one that a held hub's connection refuses.
func (o *Options) picked(req *http.Request) bool {
	return o.Meet != nil && (o.Refuses == nil || o.Refuses(req))
}
