package messenger

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/message"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// ErrRefused means that the receiver does not take the message, and would not another time. Errors besides it,
// message.ErrProvider, egress.ErrNotAllowed and LaterError are of the network, and may pass.
var ErrRefused = errors.New("message refused")

// LaterError means that the receiver takes no message for a while, or has a fault that may pass.
type LaterError struct {
	// Code is its answer, in HTTP.
	Code int
	// After is how long to wait, up to an hour; 0 if it does not say.
	After time.Duration
}

// Error names the code.
func (e *LaterError) Error() string { return "the receiver answers " + named(e.Code) }

// Target is where a message goes.
type Target struct {
	Provider message.Provider
	// Certificates has ca.crt, and tls.crt with tls.key; nil for none.
	Certificates map[string][]byte
	// Proxy is the data of a Secret in Flux's format; nil for none.
	Proxy map[string][]byte
	// Timeout bounds the request.
	Timeout time.Duration
}

// Messenger sends messages. Use New.
type Messenger struct {
	out    egress.Dialer
	tokens *githubapp.Tokens
}

// New returns a Messenger that connects by out.
func New(out egress.Dialer, tokens *githubapp.Tokens) *Messenger {
	return &Messenger{out: out, tokens: tokens}
}

// mostAnswer is how much of an answer is read, in bytes.
const mostAnswer = 16 << 10

// Send sends a request to its target once. Errors: message.ErrProvider, ErrRefused, LaterError, egress.NotAllowedError before
// anything is sent; others may pass.
func (m *Messenger) Send(ctx context.Context, to Target, r message.Request) error {
	ctx, cancel := context.WithTimeout(ctx, to.Timeout)
	defer cancel()
	client, err := m.client(to)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return fmt.Errorf("%w: its address cannot be used", message.ErrProvider)
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "flotilla")
	app, err := m.authorize(req, to, r, client.Transport)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("send to %s: %w", r.URL.Host, egress.Fault(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized && app != nil {
		m.tokens.Forget(*app)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil && resp.StatusCode/100 != 2 { // the code of a success is all there is to know
		return fmt.Errorf("send to %s: %w", r.URL.Host, egress.Fault(err))
	}
	if err := outcome(to.Provider.Type, resp, answer); err != nil {
		return fmt.Errorf("send to %s: %w", r.URL.Host, err)
	}
	return nil
}

// client returns an HTTP client for a target.
func (m *Messenger) client(to Target) (*http.Client, error) {
	config, err := tlsOf(to.Certificates)
	if err != nil {
		return nil, fmt.Errorf("%w: certSecretRef: %w", message.ErrProvider, err)
	}
	var proxy *url.URL
	if to.Proxy != nil {
		if proxy, err = egress.ParseProxy(to.Proxy); err != nil {
			return nil, fmt.Errorf("%w: proxy: %w", message.ErrProvider, err)
		}
	}
	return &http.Client{
		Transport: m.out.Transport(egress.Way{TLS: config, Proxy: proxy}),
		// A redirect would send the message, and what authorizes it, to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// tlsOf reads certificates as the Secret of a GitRepository has them.
func tlsOf(certificates map[string][]byte) (*tls.Config, error) {
	data := map[string][]byte{}
	for _, key := range []string{"ca.crt", "caFile", "tls.crt", "tls.key", "certFile", "keyFile"} {
		if v, found := certificates[key]; found {
			data[key] = v
		}
	}
	cred, err := git.ParseCredentials("https://localhost/repository", data)
	return cred.TLS, err
}

// authorize adds a token of the GitHub App, where the request is to have one.
func (m *Messenger) authorize(req *http.Request, to Target, r message.Request, by http.RoundTripper) (*githubapp.App, error) {
	if !r.App {
		return nil, nil
	}
	app, err := githubapp.Parse(to.Provider.Secret)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", message.ErrProvider, err)
	}
	token, err := m.tokens.Token(req.Context(), app, by)
	switch {
	case errors.Is(err, githubapp.ErrRefused), errors.Is(err, githubapp.ErrAnswer):
		return nil, fmt.Errorf("%w: %w", message.ErrProvider, err)
	case err != nil:
		return nil, fmt.Errorf("send to %s: %w", r.URL.Host, egress.Fault(err))
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return &app, nil
}

// outcome returns the error that an answer means.
func outcome(kind string, resp *http.Response, answer []byte) error {
	code := resp.StatusCode
	switch {
	case code >= 200 && code < 300:
		if why := message.Refused(kind, answer); why != "" {
			return fmt.Errorf("%w: %s", ErrRefused, why)
		}
		return nil
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return &LaterError{Code: code, After: asked(resp.Header)}
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: it redirects (%s), which is not followed: correct the address", ErrRefused, named(code))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w (%s): check the credentials in the Secret of the Provider, or name one there", ErrRefused, named(code))
	case code == http.StatusNotFound || code == http.StatusGone:
		return fmt.Errorf("%w (%s): check the address of the Provider", ErrRefused, named(code))
	default:
		return fmt.Errorf("%w (%s): check the type and the address of the Provider", ErrRefused, named(code))
	}
}

// mostWait is the longest that a receiver may ask to wait.
const mostWait = time.Hour

// asked returns how long the receiver asks to wait; 0 if it does not say, or names a date.
func asked(header http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(header.Get("Retry-After"), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, mostWait.Seconds()) * float64(time.Second))
}

// named returns a status code with its standard text.
func named(code int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
}
