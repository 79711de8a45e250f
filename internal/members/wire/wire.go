package wire

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Options are the bounds of a wire, and who is told of what goes wrong on it. All
// are required.
type Options struct {
	// Clock is the time that requests wait by.
	Clock clock.WithTicker
	// Timeout is how long one request may take; for watches, until they begin.
	Timeout time.Duration
	// Gone is called when the member could not be talked to.
	Gone func()
	// Slow is called when the member took a request and did not answer it.
	Slow func()
}

// Wire carries the requests to one member. It implements http.RoundTripper.
type Wire struct {
	cable cable
	guard guard
}

// New returns the wire to the member that config leads to. It sends nothing. Of the
// config only what connects is read: its limits are left to the wire.
func New(config *rest.Config, o Options) (*Wire, error) {
	w := &Wire{}
	if err := w.Lay(config, func() {}); err != nil {
		return nil, err
	}
	w.guard = guard{next: &w.cable, traffic: newTraffic(o.Clock), timeout: o.Timeout, gone: o.Gone, slow: o.Slow}
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
	return w.cable.lay(unlimited(config), laid)
}

// Now remembers what the wire is made of. The function that it returns acts on an
// answer if that is the same still, and says whether it is.
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
