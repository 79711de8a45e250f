package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
)

const (
	// maxRedirects is how many redirects of a request are followed.
	maxRedirects = 10
	// agent is what registries are told that we are.
	agent = "flotilla"
)

// newClient returns a client for a registry at base.
func newClient(base *url.URL, access Access, dialer egress.Dialer) *http.Client {
	guard := &egress.Guard{Origin: net.JoinHostPort(base.Hostname(), portOf(base)), Dialer: dialer}
	elsewhere := access.TLS.Clone()
	if elsewhere != nil {
		elsewhere.Certificates = nil // the client's is for the registry
	}
	transport := func(config *tls.Config) *egress.Transport {
		return dialer.Transport(egress.Way{Judge: guard.Judge, TLS: config, Proxy: access.Proxy})
	}
	return &http.Client{
		Transport:     transports{origin: base, own: transport(access.TLS), elsewhere: transport(elsewhere)},
		CheckRedirect: checkRedirect,
	}
}

// transports send requests to the registry, and to where it redirects.
type transports struct {
	origin         *url.URL
	own, elsewhere *egress.Transport
}

// RoundTrip sends a request. Credentials, which registry puts on requests to the registry, go nowhere else.
func (t transports) RoundTrip(req *http.Request) (*http.Response, error) {
	if sameOrigin(req.URL, t.origin) {
		return t.own.RoundTrip(req)
	}
	if req.Header.Get("Authorization") != "" && req.Response != nil {
		req = req.Clone(req.Context())
		req.Header.Del("Authorization")
	}
	return t.elsewhere.RoundTrip(req)
}

// CloseIdleConnections closes the connections of the transports; http.Client calls it.
func (t transports) CloseIdleConnections() {
	t.own.CloseIdleConnections()
	t.elsewhere.CloseIdleConnections()
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	default:
		return "443"
	}
}

// checkRedirect allows redirects that read, never from https to http, and removes user information from where they lead.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch last := via[len(via)-1]; {
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		return fmt.Errorf("%w: of something that is no question", ErrRedirect)
	case len(via) >= maxRedirects:
		return fmt.Errorf("%w: more than %d in a row", ErrRedirect, maxRedirects)
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return fmt.Errorf("%w: to neither http nor https", ErrRedirect)
	case last.URL.Scheme == "https" && req.URL.Scheme == "http":
		return fmt.Errorf("%w: from https to http", ErrRedirect)
	}
	req.URL.User = nil
	return nil
}

// registry is a registry, as far as it serves one repository: how it is reached, and how it wants to be asked.
type registry struct {
	base       *url.URL
	repository string
	login      Login
	clock      clock.PassiveClock
	client     *http.Client
	hints      Hints
	// writes has tokens asked for by which things may be written, too.
	writes  bool
	session session
	// until and status are when, and why, it wants to be left alone.
	until  time.Time
	status int
	// answered says that it has answered once, so that it speaks as it is spoken to.
	answered bool
}

// do asks the registry for something.
func (r *registry) do(ctx context.Context, method string, to *url.URL) (*http.Response, error) {
	return r.exchange(ctx, Request{Method: method, At: to})
}

// exchange sends a request to the registry, with credentials as it wants them, and turns error status codes into errors that callers
// know.
func (r *registry) exchange(ctx context.Context, q Request) (*http.Response, error) {
	if left := r.until.Sub(r.clock.Now()); left > 0 {
		return nil, &BusyError{Status: r.status, After: left.Round(time.Second)}
	}
	if err := r.renew(ctx); err != nil {
		return nil, err
	}
	resp, err := r.send(ctx, q)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		if err := r.answer(ctx, resp.Header); err != nil {
			return nil, err
		}
		if resp, err = r.send(ctx, q); err != nil {
			return nil, err
		}
	}
	return resp, r.judge(resp)
}

func (r *registry) send(ctx context.Context, q Request) (*http.Response, error) {
	req, err := q.prepare(ctx)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", accepted)
	req.Header.Set("Accept-Encoding", "identity") // a digest is of what is sent
	if strings.Contains(q.At.Path, "/blobs/") {
		req.Header.Set("Accept", "*/*")
	}
	if sameOrigin(q.At, r.base) { // a registry may have content sent elsewhere, but not the login
		r.session.authorize(req, r.login)
	}
	return r.ask(req)
}

// ask sends a request.
func (r *registry) ask(req *http.Request) (*http.Response, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, r.fault(err)
	}
	r.answered = true
	return resp, nil
}

// judge closes an answer that is none, and returns why.
func (r *registry) judge(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK || resp.StatusCode/100 == 2 && writes(resp.Request) {
		return nil
	}
	_ = resp.Body.Close()
	switch code := resp.StatusCode; code {
	case http.StatusUnauthorized, http.StatusForbidden:
		r.session = session{} // what was known of it is not so any more
		return r.denied(code)
	case http.StatusNotFound:
		return fmt.Errorf("%w (HTTP %d): %s", ErrNotFound, code, r.hints.Absent)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		busy := &BusyError{Status: code, After: pause(resp.Header.Get("Retry-After"), r.clock.Now())}
		r.until, r.status = r.clock.Now().Add(busy.After), code
		return busy
	default:
		if code >= http.StatusInternalServerError && code != http.StatusNotImplemented {
			return &FailedError{Status: code}
		}
		return fmt.Errorf("%w: HTTP %d", ErrStatus, code)
	}
}

func (r *registry) denied(code int) error {
	hint := r.hints.Denied
	if r.login.anonymous() {
		hint = r.hints.Login
	}
	return fmt.Errorf("%w (HTTP %d): %s", ErrUnauthorized, code, hint)
}

// fault says what went wrong with a request, and nothing of the answer.
func (r *registry) fault(err error) error {
	var of *url.Error
	if errors.Is(err, ErrRedirect) && errors.As(err, &of) {
		return of.Err
	}
	found := egress.Fault(err)
	var alert tls.AlertError
	switch {
	case errors.Is(found, egress.ErrCertificate):
		return fmt.Errorf("%w: %w; %s", ErrTLS, found, r.hints.Authority)
	case errors.Is(found, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: the server does not speak it: %s is for such", ErrTLS, r.hints.Insecure)
	case errors.As(found, &alert):
		return fmt.Errorf("%w: %w", ErrTLS, alert)
	case (errors.Is(found, egress.ErrEnded) || errors.Is(found, syscall.ECONNRESET)) && !r.answered && r.base.Scheme == "https":
		return fmt.Errorf("%w; if the server does not speak TLS: %s is for such", found, r.hints.Insecure)
	}
	return found
}
