// Package issuer verifies the tokens that OpenID Connect issuers sign for senders of webhooks.
//
// In go the token of a request, and which issuers and audiences count; out come its claims, or an error that quotes
// nothing of it. Issuers are asked for their keys over connections that an egress.Dialer makes, and what they answer is
// bounded; their keys are kept, so that a flood of tokens is no flood of questions. The package decides nothing about
// the claims.
package issuer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// ErrDenied says that a token does not count.
var ErrDenied = errors.New("the token of the request does not count")

const (
	// mostAnswer is how much an issuer may answer, in bytes.
	mostAnswer = 1 << 20
	// mostToken is how long a token may be, in bytes.
	mostToken = 16 << 10
	timeout   = 5 * time.Second
	// lasts is how long what an issuer says of itself is kept, and mostKept of how many. Keys are asked for anew whenever a
	// token names one that is not known, and once in fresh at most, as anybody may make up such a token.
	lasts    = time.Hour
	mostKept = 100
	fresh    = 10 * time.Second
)

// algorithms are those that count: all that are signatures.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512}

// Issuers verifies tokens. It is for use by several goroutines.
type Issuers struct {
	client *http.Client
	clock  clock.PassiveClock

	mu   sync.Mutex
	kept map[string]known
}

type known struct {
	provider *oidc.Provider
	err      error
	until    time.Time
}

// New returns Issuers that are reached by a dialer.
func New(reach egress.Dialer, c clock.PassiveClock) *Issuers {
	transport := &http.Transport{DialContext: reach.DialContext, TLSHandshakeTimeout: timeout, IdleConnTimeout: time.Minute, MaxIdleConns: 10}
	return &Issuers{
		client: &http.Client{
			Transport: bounded{next: transport, clock: c, last: map[string]time.Time{}}.ready(), Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		clock: c, kept: map[string]known{},
	}
}

// Of returns who claims to have issued a token; empty for what is none. It is not verified.
func Of(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, ok := strings.Cut(rest, ".")
	if !ok || len(token) > mostToken {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// Verify returns the claims of a token that an issuer has signed for an audience, and that is valid now. Errors:
// ErrDenied; any other is a fault of the issuer's.
func (x *Issuers) Verify(ctx context.Context, issuer, audience, token string) (map[string]any, error) {
	if len(token) > mostToken {
		return nil, fmt.Errorf("%w: it is too long", ErrDenied)
	}
	provider, err := x.provider(ctx, issuer)
	if err != nil {
		return nil, err
	}
	config := &oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms, Now: x.clock.Now}
	verified, err := provider.Verifier(config).Verify(oidc.ClientContext(ctx, x.client), token)
	if err != nil {
		return nil, fmt.Errorf("%w: its signature, its audience or its time is wrong, or the keys of %s cannot be had", ErrDenied, issuer)
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: its claims cannot be read", ErrDenied)
	}
	return claims, nil
}

// provider returns what an issuer says of itself. A fault is kept for a while, too.
func (x *Issuers) provider(ctx context.Context, issuer string) (*oidc.Provider, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.clock.Now()
	if k, ok := x.kept[issuer]; ok && now.Before(k.until) {
		return k.provider, k.err
	}
	if len(x.kept) >= mostKept {
		clear(x.kept)
	}
	// The provider asks for keys later, when this request is over.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), x.client), issuer)
	k := known{provider: provider, until: now.Add(lasts)}
	if err != nil {
		k.err, k.until = fmt.Errorf("ask the issuer %s about itself: %w", issuer, reason(err)), now.Add(fresh)
	}
	x.kept[issuer] = k
	return k.provider, k.err
}

// reason returns an error without anything that an issuer answered.
func reason(err error) error {
	if errors.Is(err, egress.ErrNotAllowed) {
		return err
	}
	if fault := egress.Fault(err); fault != nil && !errors.Is(fault, err) {
		return fault
	}
	return errors.New("its answer is not that of an OpenID Connect issuer with this address")
}

// bounded cuts answers, and asks the same address for keys once in a while only.
type bounded struct {
	next  http.RoundTripper
	clock clock.PassiveClock
	mu    *sync.Mutex
	last  map[string]time.Time
}

func (b bounded) ready() bounded {
	b.mu = &sync.Mutex{}
	return b
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	if !b.due(req.URL.String()) {
		return nil, errors.New("it was asked just now")
	}
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, mostAnswer), resp.Body}
	}
	return resp, err
}

func (b bounded) due(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	if last, ok := b.last[address]; ok && now.Sub(last) < fresh {
		return false
	}
	if len(b.last) >= mostKept {
		clear(b.last)
	}
	b.last[address] = now
	return true
}
