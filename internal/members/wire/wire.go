package wire

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

// Options are the bounds of a wire, and who is told of what goes wrong on it. All
// but Gate are required.
type Options struct {
	// Clock is the time that requests wait by.
	Clock clock.WithTicker
	// Timeout is how long one request may take; for watches, until they begin.
	Timeout time.Duration
	// Gone is called when the member could not be talked to.
	Gone func()
	// Slow is called when the member took a request and did not answer it.
	Slow func()
	// Gate reports whether the member may be written to; nil: always.
	Gate Gate
}

// Gate reports whether members may be written to, at the last moment before that.
type Gate interface {
	// Member returns a transport that sends writes while that is so.
	Member(next http.RoundTripper) http.RoundTripper
	// Dial returns a way to make connections that send while that is so; nil stands for
	// the machine's network.
	Dial(dial tenure.DialFunc) tenure.DialFunc
}

// Wire carries the requests to one member. It implements http.RoundTripper.
type Wire struct {
	cable cable
	guard guard
	gate  Gate
}

// New returns the wire to the member that config leads to. It sends nothing. Of the
// config only what connects is read: its limits are left to the wire.
func New(config *rest.Config, o Options) (*Wire, error) {
	w := &Wire{gate: o.Gate}
	if err := w.Lay(config, func() {}); err != nil {
		return nil, err
	}
	var way http.RoundTripper = &w.cable
	if o.Gate != nil {
		way = o.Gate.Member(way)
	}
	w.guard = guard{next: way, traffic: newTraffic(o.Clock), timeout: o.Timeout, gone: o.Gone, slow: o.Slow}
	return w, nil
}

// RoundTrip implements http.RoundTripper. Errors: ErrBusy, one that is
// context.DeadlineExceeded where no answer came in time, or that of the way.
func (w *Wire) RoundTrip(req *http.Request) (*http.Response, error) { return w.guard.RoundTrip(req) }

// WrappedRoundTripper lets callers find the transport below.
func (w *Wire) WrappedRoundTripper() http.RoundTripper { return &w.guard }

// Lay replaces what the wire is made of: requests on their way are answered, and
// watches end, to be taken up again where they were. Laid is called before anybody
// may act on an answer that came by what it was made of until then.
func (w *Wire) Lay(config *rest.Config, laid func()) error {
	config = unlimited(config)
	if w.gate != nil {
		config.Dial = w.gate.Dial(config.Dial)
	}
	return w.cable.lay(config, laid)
}

// Now remembers what the wire is made of. The function that it returns acts on an
// answer if that is the same still, and reports whether it is.
func (w *Wire) Now() (still func(act func()) bool) {
	asked := w.cable.current.Load()
	return func(act func()) bool { return w.cable.still(asked, act) }
}

// unlimited returns a copy of a config that leaves limits to the guard.
func unlimited(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.QPS, out.Burst, out.RateLimiter, out.Timeout = -1, 0, nil, 0
	return out
}
