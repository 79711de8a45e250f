package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// connection carries the requests to one member. What it is made of, credentials and
// certificates, can be replaced while it is in use: requests on their way are
// answered, and watches end, to be taken up again where they were.
type connection struct {
	current atomic.Pointer[session]
	laying  sync.Mutex
}

// replace replaces what the connection is made of. Connected is called before anybody may act on
// an answer that came by what it was made of until then.
func (c *connection) replace(config *rest.Config, connected func()) error {
	carrier, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("set up the connection: %w", err)
	}
	c.laying.Lock()
	old := c.current.Swap(&session{carrier: carrier, watches: map[*watchBody]context.CancelFunc{}})
	connected()
	c.laying.Unlock()
	if old != nil {
		old.end()
	}
	return nil
}

// still acts on an answer if the connection is what it was when that was asked for, and
// reports whether it is.
func (c *connection) still(s *session, act func()) bool {
	c.laying.Lock()
	defer c.laying.Unlock()
	if c.current.Load() != s {
		return false
	}
	act()
	return true
}

// RoundTrip implements http.RoundTripper.
func (c *connection) RoundTrip(req *http.Request) (*http.Response, error) {
	s := c.current.Load()
	if !isWatch(req) {
		return s.carrier.RoundTrip(req)
	}
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := s.carrier.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = s.keep(resp.Body, cancel)
	return resp, nil
}

// WrappedRoundTripper lets callers find the transport below.
func (c *connection) WrappedRoundTripper() http.RoundTripper { return c.current.Load().carrier }

func isWatch(req *http.Request) bool { return req.URL.Query().Get("watch") == "true" }

// session is what a connection is made of at a time.
type session struct {
	carrier http.RoundTripper

	mu      sync.Mutex
	over    bool
	watches map[*watchBody]context.CancelFunc
}

// end ends the watches, and the connections that nobody uses.
func (s *session) end() {
	s.mu.Lock()
	s.over = true
	for _, cancel := range s.watches {
		cancel()
	}
	s.mu.Unlock()
	utilnet.CloseIdleConnectionsFor(s.carrier)
}

// keep has a watch end with the strand.
func (s *session) keep(body io.ReadCloser, cancel context.CancelFunc) io.ReadCloser {
	w := &watchBody{ReadCloser: body, session: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[w] = cancel
	if s.over {
		cancel()
	}
	return w
}

// watchBody is the body of a watch, which comes to a plain end with its strand.
type watchBody struct {
	io.ReadCloser
	session *session
}

// Read implements io.Reader.
func (w *watchBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.session.mu.Lock()
		defer w.session.mu.Unlock()
		if w.session.over {
			err = io.EOF
		}
	}
	return n, err
}

// Close implements io.Closer.
func (w *watchBody) Close() error {
	w.session.mu.Lock()
	cancel := w.session.watches[w]
	delete(w.session.watches, w)
	w.session.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return w.ReadCloser.Close()
}
