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
	session    session
	// until and status are when, and why, it wants to be left alone.
	until  time.Time
	status int
}

// errStatus is an answer that nothing else is known about.
var errStatus = errors.New("unexpected answer")

// do sends a request to the registry, with credentials as it wants them, and turns error status codes into errors that callers
// know.
func (r *registry) do(ctx context.Context, method string, to *url.URL) (*http.Response, error) {
	if left := r.until.Sub(r.clock.Now()); left > 0 {
		return nil, &BusyError{Status: r.status, After: left.Round(time.Second)}
	}
	if err := r.renew(ctx); err != nil {
		return nil, err
	}
	resp, err := r.send(ctx, method, to)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		if err := r.answer(ctx, resp.Header); err != nil {
			return nil, err
		}
		if resp, err = r.send(ctx, method, to); err != nil {
			return nil, err
		}
	}
	return resp, r.judge(resp)
}

func (r *registry) send(ctx context.Context, method string, to *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", accepted)
	req.Header.Set("Accept-Encoding", "identity") // a digest is of what is sent
	if strings.Contains(to.Path, "/blobs/") {
		req.Header.Set("Accept", "*/*")
	}
	r.session.authorize(req, r.login)
	return r.ask(req)
}

// ask sends a request.
func (r *registry) ask(req *http.Request) (*http.Response, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fault(err)
	}
	return resp, nil
}

// judge closes an answer that is none, and returns why.
func (r *registry) judge(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	_ = resp.Body.Close()
	switch code := resp.StatusCode; code {
	case http.StatusUnauthorized, http.StatusForbidden:
		r.session = session{} // what was known of it is not so any more
		return r.denied(code)
	case http.StatusNotFound:
		return fmt.Errorf("%w (HTTP %d): check spec.url and spec.ref, and the credentials if the repository is private", ErrNotFound, code)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		busy := &BusyError{Status: code, After: pause(resp.Header.Get("Retry-After"), r.clock.Now())}
		r.until, r.status = r.clock.Now().Add(busy.After), code
		return busy
	default:
		if code >= http.StatusInternalServerError && code != http.StatusNotImplemented {
			return fmt.Errorf("the registry answered HTTP %d", code)
		}
		return fmt.Errorf("%w: HTTP %d", errStatus, code)
	}
}

func (r *registry) denied(code int) error {
	hint := "check the login for the registry in the Secret, and what it may read"
	if r.login.anonymous() {
		hint = "the registry wants a login, name a Secret that has one for " + r.base.Host + " in spec.secretRef"
	}
	return fmt.Errorf("%w (HTTP %d): %s", ErrUnauthorized, code, hint)
}

// fault says what went wrong with a request, and nothing of the answer.
func fault(err error) error {
	var of *url.Error
	if errors.Is(err, ErrRedirect) && errors.As(err, &of) {
		return of.Err
	}
	found := egress.Fault(err)
	var alert tls.AlertError
	switch {
	case errors.Is(found, egress.ErrCertificate):
		return fmt.Errorf("%w: %w; put the authority in ca.crt of the Secret of spec.certSecretRef", ErrTLS, found)
	case errors.Is(found, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: the server does not speak TLS: spec.insecure is for such", ErrTLS)
	case errors.As(found, &alert):
		return fmt.Errorf("%w: %w", ErrTLS, alert)
	}
	return found
}
