package git

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// httpConnection speaks Git's smart HTTP protocol.
type httpConnection struct {
	remote  *Remote
	service string
	client  *http.Client
	base    *url.URL // where requests go; changes with a redirect
}

// maxRedirects is how many redirects of the first request are followed.
const maxRedirects = 10

func (r *Remote) connectHTTP(service string) *httpConnection {
	base := *r.url
	base.User = nil
	base.Path = strings.TrimSuffix(base.Path, "/")
	guard := newDialGuard(&base, r.opts)
	config := r.cred.TLS.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport := &http.Transport{
		DialContext:       guard.dial,
		TLSClientConfig:   config,
		ForceAttemptHTTP2: true,
	}
	return &httpConnection{
		remote: r, service: service, base: &base,
		client: &http.Client{
			Transport:     credentialTransport{origin: &base, cred: r.cred, next: transport},
			CheckRedirect: checkRedirect,
		},
	}
}

// credentialTransport adds credentials to requests to the repository's own host
// only.
type credentialTransport struct {
	origin *url.URL
	cred   Credentials
	next   *http.Transport
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

func (c *httpConnection) refs(ctx context.Context) (*packp.AdvRefs, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.String()+"/info/refs?service="+c.service, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", capability.DefaultAgent())
	resp, err := c.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if want := "application/x-" + c.service + "-advertisement"; !strings.HasPrefix(resp.Header.Get("Content-Type"), want) {
		return nil, fmt.Errorf("%w: not a Git repository served over smart HTTP, check spec.url", ErrMalformed)
	}
	if err := c.follow(resp.Request.URL); err != nil {
		return nil, err
	}
	return decodeRefs(body{resp.Body}, c.remote.opts.Limits.Refs)
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
	req.Header.Set("User-Agent", capability.DefaultAgent())
	req.Header.Set("Content-Type", "application/x-"+c.service+"-request")
	req.Header.Set("Accept", "application/x-"+c.service+"-result")
	resp, err := c.do(req)
	if err != nil {
		return nil, err
	}
	return body{resp.Body}, nil
}

// body is a response body whose read errors show none of its content.
type body struct{ io.ReadCloser }

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
		return fmt.Errorf("%w: the server does not speak TLS", ErrTLS)
	case errors.As(fault, &alert):
		return fmt.Errorf("%w: %w", ErrTLS, alert)
	}
	return fault
}

func (c *httpConnection) close() { c.client.CloseIdleConnections() }
