package hubconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/hub"
)

// Options tune a Link. The zero value is what production uses.
type Options struct {
	// Server is the URL of the hub. Required.
	Server string
	// Probe sends what finds out whether the hub is there, with the credentials of
	// the program. Required.
	Probe http.RoundTripper
	// Known is the identity of the hub that was there before; empty takes the
	// first one that answers.
	Known string
	// Learned is called with the identity of the hub when Known was empty. Nothing is let
	// through before it returns nil.
	Learned func(identity string) error
	// Meet is asked at each look whether a hub that says who it is, with its namespace
	// kube-system, is to be listened to; nil listens to each. With hub.ErrHeld the hub
	// is there, but requests that Refuses picks are refused as if it were not, and those
	// that are under way end. It is asked again as often as a hub that is away, which
	// other errors stand for.
	Meet func(context.Context, *metav1.PartialObjectMetadata) error
	// Refuses picks the requests that are refused while the hub is held; nil picks all.
	Refuses func(*http.Request) bool
	// FirstPause and LongestPause bound the time between two looks for a hub that
	// is away; zero means 1 s and 30 s. Pauses double, and vary by a fifth.
	FirstPause, LongestPause time.Duration
	// Timeout is how long a request may take, watches aside; zero means 30 s.
	Timeout time.Duration
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

func defaults(o Options) Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.FirstPause, time.Second)
	set(&o.LongestPause, 30*time.Second)
	set(&o.Timeout, 30*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Learned == nil {
		o.Learned = func(string) error { return nil }
	}
	return o
}

// Connection knows whether the hub is there. Use New.
type Connection struct {
	*listener
	options Options
	suspect chan struct{} // a request had no answer
	hint    chan struct{} // something has changed that may bring the hub back

	mu       sync.Mutex
	known    string
	away     error         // nil: the hub is there
	back     chan struct{} // closed when it is
	skew     time.Duration
	asked    chan struct{} // closed when the first look is over
	watchers []func(away error)
}

// New returns a connection that has yet to find its hub. Run does.
func New(o Options) *Connection {
	o = defaults(o)
	return &Connection{
		listener: newListener(),
		options:  o,
		suspect:  make(chan struct{}, 1),
		hint:     make(chan struct{}, 1),
		known:    o.Known,
		away:     errors.New("it was not asked yet"),
		back:     make(chan struct{}),
		asked:    make(chan struct{}),
	}
}

// OnChange adds a function to call when the hub is there, with nil, and when it is
// not, or not to be listened to, with why. It must not block, and is called before
// Run.
func (c *Connection) OnChange(reported func(away error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(c.watchers, reported)
}

// Away is why the hub is out of reach; nil if it is there.
func (c *Connection) Away() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away
}

// Identity is that of the hub; empty until it is known.
func (c *Connection) Identity() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// Skew is how far the hub's clock was ahead of this one at the last look.
func (c *Connection) Skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew
}

// Back is closed while the hub is there.
func (c *Connection) Back() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.back
}

// Await waits until the hub is there.
func (c *Connection) Await(ctx context.Context) error {
	select {
	case <-c.Back():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wrap returns the transport that the program's requests go through.
func (c *Connection) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{conn: c, next: next}
}

// Hint has a hub that is away looked for now: there is a reason to think that it
// will answer.
func (c *Connection) Hint() {
	select {
	case c.hint <- struct{}{}:
	default:
	}
}

// Suspect has the hub looked at again before anything else is sent: its answers
// say that something is wrong.
func (c *Connection) Suspect() {
	select {
	case c.suspect <- struct{}{}:
	default:
	}
}

// Run looks for the hub while it is away, until ctx ends. One that was there for a
// while and gives no answer is asked again at once; one that comes and goes is
// asked less and less often.
func (c *Connection) Run(ctx context.Context) {
	pause := time.Duration(0)
	for {
		err := c.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		c.set(err)
		if err == nil {
			since := c.options.Clock.Now()
			if !c.stay(ctx) {
				return
			}
			if c.options.Clock.Since(since) >= c.options.LongestPause {
				pause = 0
				continue
			}
		}
		pause = min(max(2*pause, c.options.FirstPause), c.options.LongestPause)
		if !c.sleep(ctx, vary(pause)) {
			return
		}
		select { // what is about to be looked at needs no reminder
		case <-c.suspect:
		default:
		}
	}
}

// stay waits until there is a reason to look at a hub that is there: it is suspect,
// or did not say who it is yet, as before an agent has its rights. Until it has, it
// could not be distinguished from another one.
func (c *Connection) stay(ctx context.Context) bool {
	var again <-chan time.Time
	if c.Identity() == "" {
		timer := c.options.Clock.NewTimer(c.options.LongestPause)
		defer timer.Stop()
		again = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-c.suspect:
	case <-again:
	}
	return true
}

// vary keeps many who lost one hub from coming back in one moment.
func vary(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

func (c *Connection) sleep(ctx context.Context, d time.Duration) bool {
	timer := c.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-c.hint:
		return true
	case <-timer.C():
		return true
	}
}

// set records what a look found, and reports a change.
func (c *Connection) set(state error) {
	c.mu.Lock()
	was, first := cmp.Or(c.away, c.Held()), false
	wasAway := c.away != nil
	if c.away = state; errors.Is(state, hub.ErrHeld) {
		c.away = nil
	}
	c.hear(state)
	select {
	case <-c.asked:
	default:
		first = true
		close(c.asked)
	}
	switch {
	case c.away == nil && wasAway:
		close(c.back)
	case c.away != nil && !wasAway:
		c.back = make(chan struct{})
	}
	reported := c.watchers
	c.mu.Unlock()
	if first || kindOf(was) != kindOf(state) {
		for _, report := range reported {
			report(state)
		}
	}
}

// kindOf returns what must differ for a state to be reported again: the texts of network errors differ each
// time.
func kindOf(away error) string {
	switch {
	case away == nil:
		return "there"
	case errors.Is(away, ErrOtherHub), errors.Is(away, hub.ErrHeld):
		return away.Error()
	case errors.Is(away, ErrRefused):
		return ErrRefused.Error()
	default:
		return "away"
	}
}

// lost keeps that a request had no answer, and has the hub looked for.
func (c *Connection) lost(err error) {
	if c.Away() == nil {
		c.set(err)
		c.Suspect()
	}
}

// Asked is closed once the first look is over, whatever it found.
func (c *Connection) Asked() <-chan struct{} { return c.asked }

// awayError is what requests end with while the hub is away. It counts as a
// refused connection, so that watches are taken up again where they ended.
type awayError struct{ why error }

func (e *awayError) Error() string   { return fmt.Sprintf("%s: %s", hub.ErrAway, e.why) }
func (e *awayError) Unwrap() []error { return []error{hub.ErrAway, syscall.ECONNREFUSED, e.why} }
