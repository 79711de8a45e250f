package git

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// httpConnection speaks Git's smart HTTP protocol.
type httpConnection struct {
	remote  *Remote
	service string
	client  *http.Client
	base    *url.URL // where requests go; changes with a redirect
	// memory has greetings of earlier connections; nil for none.
	memory *greetings
}

// maxRedirects is how many redirects of the first request are followed.
const maxRedirects = 10

func (r *Remote) connectHTTP(service string) *httpConnection {
	base := *r.url
	base.User = nil
	base.Path = strings.TrimSuffix(base.Path, "/")
	c := &httpConnection{remote: r, service: service, base: &base}
	c.client = &http.Client{
		Transport:     credentialTransport{origin: &base, cred: r.cred, next: r.opts.Kept.transport(&base, r.cred, r.opts)},
		CheckRedirect: checkRedirect,
	}
	if service == uploadPack {
		c.memory = r.opts.Kept.greetings(&base, r.cred, r.opts)
	}
	return c
}

// newTransport returns the way to a repository's host, and to those to which it
// redirects.
func newTransport(origin *url.URL, cred Credentials, opts Options) *egress.Transport {
	guard := &egress.Guard{Origin: net.JoinHostPort(origin.Hostname(), portOf(origin)), Dialer: opts.Egress}
	return opts.Egress.Transport(egress.Way{Judge: guard.Judge, TLS: cred.TLS, Proxy: opts.Proxy})
}

// credentialTransport adds credentials to requests to the repository's own host
// only.
type credentialTransport struct {
	origin *url.URL
	cred   Credentials
	next   *egress.Transport
}

// RoundTrip sends the request, with credentials if it goes to the origin.
func (t credentialTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if sameOrigin(req.URL, t.origin) {
		req = req.Clone(req.Context())
		switch {
		case t.cred.BearerToken != "":
			req.Header.Set("Authorization", "Bearer "+t.cred.BearerToken)
		case t.cred.Username != "":
			req.SetBasicAuth(t.cred.Username, t.cred.Password)
		}
		return t.next.RoundTrip(req)
	}
	if t.cred.TLS != nil && len(t.cred.TLS.Certificates) > 0 {
		return nil, fmt.Errorf("%w: the client certificate is for %s only", ErrRedirect, t.origin.Host)
	}
	return t.next.RoundTrip(req)
}

// CloseIdleConnections closes the connections of the transport below; http.Client
// calls it.
func (t credentialTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == schemeHTTP:
		return "80"
	default:
		return "443"
	}
}

// checkRedirect allows redirects of GET requests only, never from https to http,
// and removes user information from the address in the Location header.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch last := via[len(via)-1]; {
	case via[0].Method != http.MethodGet: // some redirects turn a POST into a GET
		return fmt.Errorf("%w: in the middle of a transfer", ErrRedirect)
	case len(via) >= maxRedirects:
		return fmt.Errorf("%w: more than %d in a row", ErrRedirect, maxRedirects)
	case req.URL.Scheme != schemeHTTP && req.URL.Scheme != schemeHTTPS:
		return fmt.Errorf("%w: to neither http nor https", ErrRedirect)
	case last.URL.Scheme == schemeHTTPS && req.URL.Scheme == schemeHTTP:
		return fmt.Errorf("%w: from https to http", ErrRedirect)
	}
	req.URL.User = nil
	return nil
}

func (c *httpConnection) greet(ctx context.Context) (*wire.Greeting, bool, error) {
	if greeting := c.memory.get(); greeting != nil {
		return greeting, true, nil
	}
	greeting, err := c.ask(ctx)
	if err != nil {
		return nil, false, err
	}
	c.memory.keep(greeting, c.base)
	return greeting, false, nil
}

func (c *httpConnection) forget() { c.memory.keep(nil, nil) }

// ask requests the greeting, and goes on where it was found.
func (c *httpConnection) ask(ctx context.Context) (*wire.Greeting, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.String()+"/info/refs?service="+c.service, nil)
	if err != nil {
		return nil, err
	}
	c.describe(req)
	resp, err := c.do(req)
	if err != nil {
		return nil, err
	}
	answer := body{resp.Body}
	defer answer.Close()
	if want := "application/x-" + c.service + "-advertisement"; !strings.HasPrefix(resp.Header.Get("Content-Type"), want) {
		return nil, fmt.Errorf("%w: not a Git repository served over smart HTTP, check spec.url", ErrMalformed)
	}
	if err := c.follow(resp.Request.URL); err != nil {
		return nil, err
	}
	return wire.ReadGreeting(answer, c.remote.opts.Limits.Refs)
}

// follow makes later requests go to where the first one was redirected.
func (c *httpConnection) follow(reached *url.URL) error {
	path, ok := strings.CutSuffix(reached.Path, "/info/refs")
	if !ok {
		return fmt.Errorf("%w: to something that is not the list of refs", ErrRedirect)
	}
	c.base = &url.URL{Scheme: reached.Scheme, Host: reached.Host, Path: path}
	return nil
}

func (c *httpConnection) exchange(ctx context.Context, request func(io.Writer) error) (io.ReadCloser, error) {
	var content bytes.Buffer
	if err := request(&content); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+"/"+c.service, &content)
	if err != nil {
		return nil, err
	}
	c.describe(req)
	req.Header.Set("Content-Type", "application/x-"+c.service+"-request")
	req.Header.Set("Accept", "application/x-"+c.service+"-result")
	resp, err := c.do(req)
	if err != nil {
		return nil, err
	}
	return body{resp.Body}, nil
}

// describe says who asks, and in which version of the protocol.
func (c *httpConnection) describe(req *http.Request) {
	req.Header.Set("User-Agent", wire.Agent)
	if c.service == uploadPack {
		req.Header.Set("Git-Protocol", wire.Version2)
		// A request that only reads may be sent once more if the server closes a kept
		// connection meanwhile. The header itself is not sent.
		req.Header["X-Idempotency-Key"] = nil
	}
}

// body is a response body whose read errors show none of its content.
type body struct{ io.ReadCloser }

// maxRest is how much of a response is read so that its connection can be kept, in
// bytes.
const maxRest = 4 << 10

// Close reads a short rest of the response and closes it.
func (b body) Close() error {
	_, _ = io.CopyN(io.Discard, b.ReadCloser, maxRest)
	return b.ReadCloser.Close()
}

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // as readers say that all is read
		err = egress.Fault(err)
	}
	return n, err
}

// do sends the request and turns error status codes into errors that callers
// know.
func (c *httpConnection) do(req *http.Request) (*http.Response, error) {
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, httpFault(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%w (HTTP %d): %s", ErrUnauthorized, resp.StatusCode, c.remote.authHint())
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%w (HTTP %d): check spec.url, and the credentials if the repository is private", ErrRepositoryNotFound, resp.StatusCode)
	default:
		return nil, fmt.Errorf("server answered HTTP %d", resp.StatusCode)
	}
}

func (r *Remote) authHint() string {
	if r.cred.Username == "" && r.cred.BearerToken == "" {
		return "the repository wants credentials, name a Secret in spec.secretRef"
	}
	return "check the credentials in the Secret of spec.secretRef, and what they may read"
}

// httpFault classifies TLS faults. It shows nothing of the response: neither
// content nor the target of a redirect.
func httpFault(err error) error {
	var of *url.Error
	if errors.Is(err, ErrRedirect) && errors.As(err, &of) {
		return of.Err
	}
	fault := egress.Fault(err)
	var alert tls.AlertError
	switch {
	case errors.Is(fault, egress.ErrCertificate):
		return fmt.Errorf("%w: %w; put the authority in the Secret's ca.crt", ErrTLS, fault)
	case errors.Is(fault, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: the server does not speak it: http:// is for such", ErrTLS)
	case errors.As(fault, &alert):
		return fmt.Errorf("%w: %w", ErrTLS, alert)
	}
	return fault
}

func (c *httpConnection) close() {
	if c.remote.opts.Kept == nil {
		c.client.CloseIdleConnections()
	}
}
