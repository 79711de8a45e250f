package transport

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

// Options are the bounds of a transport, and the callbacks for what goes wrong on it. All
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

// Transport carries the requests to one member. It implements http.RoundTripper.
type Transport struct {
	connection connection
	guard      guard
	gate       Gate
}

// New returns the transport to the member that config leads to. It sends nothing. Of the
// config only what connects is read: its limits are left to the transport.
func New(config *rest.Config, o Options) (*Transport, error) {
	t := &Transport{gate: o.Gate}
	if err := t.Connect(config, func() {}); err != nil {
		return nil, err
	}
	var way http.RoundTripper = &t.connection
	if o.Gate != nil {
		way = o.Gate.Member(way)
	}
	t.guard = guard{next: way, traffic: newTraffic(o.Clock), timeout: o.Timeout, gone: o.Gone, slow: o.Slow}
	return t, nil
}

// RoundTrip implements http.RoundTripper. Errors: ErrBusy, one that is
// context.DeadlineExceeded where no answer came in time, or that of the way.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.guard.RoundTrip(req)
}

// WrappedRoundTripper lets callers find the transport below.
func (t *Transport) WrappedRoundTripper() http.RoundTripper { return &t.guard }

// Connect replaces the connection: requests on their way are answered, and
// watches end, to be taken up again where they were. Connected is called before anybody
// may act on an answer that came by the connection until then.
func (t *Transport) Connect(config *rest.Config, connected func()) error {
	config = unlimited(config)
	if t.gate != nil {
		config.Dial = t.gate.Dial(config.Dial)
	}
	return t.connection.replace(config, connected)
}

// Now remembers the connection. The function that it returns acts on an
// answer if it is the same still, and reports whether it is.
func (t *Transport) Now() (still func(act func()) bool) {
	asked := t.connection.current.Load()
	return func(act func()) bool { return t.connection.still(asked, act) }
}

// unlimited returns a copy of a config that leaves limits to the guard.
func unlimited(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.QPS, out.Burst, out.RateLimiter, out.Timeout = -1, 0, nil, 0
	return out
}
