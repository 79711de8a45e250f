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

// Options configure a Connection. The zero value of an optional field is what production uses.
type Options struct {
	// Server is the URL of the hub. Required.
	Server string
	// Probe sends the requests that find out whether the hub is there, with the
	// credentials of the program. It is not Wrap's transport, which is shut by then.
	// Required.
	Probe http.RoundTripper
	// Known is the identity of the hub that was there before; empty takes the
	// first one that answers.
	Known string
	// Learned is called with the identity of the hub when Known was empty. No request
	// passes before it returns nil.
	Learned func(identity string) error
	// Meet is called at each probe with the hub's namespace kube-system, and decides
	// whether to trust what the hub serves; nil trusts every hub. After hub.ErrHeld the
	// hub counts as there, but requests that Refuses picks fail as if it were away, those
	// in flight are cancelled, and probes go on as for a hub that is away. After any other
	// error the hub counts as away.
	Meet func(context.Context, *metav1.PartialObjectMetadata) error
	// Refuses picks the requests that are refused while the hub is held; nil picks all.
	Refuses func(*http.Request) bool
	// FirstPause and LongestPause bound the time between two probes of a hub that is
	// away; zero means 1 s and 30 s. Pauses double, with a jitter of a fifth.
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
	asked    chan struct{} // closed when the first probe is over
	watchers []func(away error)
}

// New returns a connection to a hub that counts as away until Run has probed it.
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

// OnChange adds a function to call with nil when the hub is there, and with the reason when
// it is away or held. The function must not block. OnChange is called before Run.
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

// Skew is how far the hub's clock was ahead of this one at the last answer.
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

// Hint probes a hub that is away at once: the caller has a reason to think that it will
// answer.
func (c *Connection) Hint() {
	select {
	case c.hint <- struct{}{}:
	default:
	}
}

// Suspect probes the hub again soon: its answers show that something is wrong.
func (c *Connection) Suspect() {
	select {
	case c.suspect <- struct{}{}:
	default:
	}
}

// Run probes the hub while it is away, until ctx ends. A hub that was there for at least
// LongestPause is probed again at once when it gives no answer; one that comes and goes is
// probed less and less often, so that a hub that breaks under load is left to recover.
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
		select { // the coming probe makes this request for one superfluous
		case <-c.suspect:
		default:
		}
	}
}

// stay waits until there is a reason to probe a hub that is there: it is suspect, or has
// not shown its identity yet, as before an agent has its RBAC rules. Without the identity
// it could not be distinguished from another hub.
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

// vary adds jitter to a pause: many agents that lost one hub must not all come back at once.
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

// set records what a probe found, and reports a change to the functions of OnChange.
func (c *Connection) set(state error) {
	c.mu.Lock()
	was, first := cmp.Or(c.away, c.Held()), false
	wasAway := c.away != nil
	if c.away = state; errors.Is(state, hub.ErrHeld) {
		c.away = nil
	}
	c.hear(state, c.options.Clock.Now()) // before anybody can see the state
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

// kindOf classifies a state: a state is reported again only where its class differs, since
// the texts of network errors differ at each probe.
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

// lost records that a request had no answer, and starts probing the hub.
func (c *Connection) lost(err error) {
	if c.Away() == nil {
		c.set(err)
		c.Suspect()
	}
}

// Asked is closed once the first probe is over, whatever it found.
func (c *Connection) Asked() <-chan struct{} { return c.asked }

// awayError is the error of requests while the hub is away. It wraps ECONNREFUSED:
// client-go's reflectors resume their watches after that where they ended, and do not list
// everything again.
type awayError struct{ why error }

func (e *awayError) Error() string   { return fmt.Sprintf("%s: %s", hub.ErrAway, e.why) }
func (e *awayError) Unwrap() []error { return []error{hub.ErrAway, syscall.ECONNREFUSED, e.why} }
