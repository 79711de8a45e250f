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
	"net/http"
	"slices"
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
	mostAnswer = 256 << 10
	// mostToken is how long a token may be, in bytes.
	mostToken = 16 << 10
	timeout   = 5 * time.Second
	// lasts is how long what an issuer says is kept, and mostKept of how many. Its keys are asked for anew where a token
	// names one that is not known, but once in fresh at most, as anybody may make up such a token; a fault is kept as long.
	lasts    = time.Hour
	mostKept = 100
	fresh    = 10 * time.Second
	// mostVerified is how many signatures are verified at a time.
	mostVerified = 4
)

// algorithms are those that count: all that are signatures.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512}

// Issuers verifies tokens. It is for use by several goroutines.
type Issuers struct {
	client *http.Client
	clock  clock.PassiveClock
	slots  chan struct{}

	mu   sync.Mutex
	kept map[string]*known
}

// New returns Issuers that are reached by a dialer.
func New(reach egress.Dialer, c clock.PassiveClock) *Issuers {
	return &Issuers{
		client: &http.Client{
			Transport: &http.Transport{DialContext: reach.DialContext, TLSHandshakeTimeout: timeout, IdleConnTimeout: time.Minute, MaxIdleConns: 10}, Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		clock: c, slots: make(chan struct{}, mostVerified), kept: map[string]*known{},
	}
}

// Of returns who claims to have issued a token; empty for what is none. It is not verified.
func Of(token string) string {
	var claims struct {
		Issuer string `json:"iss"`
	}
	if decode(token, 1, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// decode reads one part of a token: 0 is its header, 1 its claims.
func decode(token string, part int, into any) error {
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 || len(token) > mostToken {
		return errors.New("it is no token")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[part])
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Verify returns the claims of a token that an issuer has signed for an audience, and that is valid now. Errors:
// ErrDenied, and that of a context that ended; any other is a fault of the issuer's.
func (x *Issuers) Verify(ctx context.Context, issuer, audience, token string) (map[string]any, error) {
	var header struct {
		Key       string `json:"kid"`
		Algorithm string `json:"alg"`
	}
	if decode(token, 0, &header) != nil {
		return nil, fmt.Errorf("%w: it is none", ErrDenied)
	}
	if !slices.Contains(algorithms, header.Algorithm) { // whatever keys the issuer has, which may not be known now
		return nil, fmt.Errorf("%w: it is not signed, or in no way that counts", ErrDenied)
	}
	keys, err := x.keys(ctx, issuer, header.Key)
	if err != nil {
		return nil, err
	}
	select {
	case x.slots <- struct{}{}:
		defer func() { <-x.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	config := &oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms, Now: x.clock.Now}
	verified, err := oidc.NewVerifier(issuer, keys, config).Verify(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("%w: its signature, its audience or its time is wrong, or %s has no such key", ErrDenied, issuer)
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: its claims cannot be read", ErrDenied)
	}
	return claims, nil
}

// keys returns those of an issuer that have a name.
func (x *Issuers) keys(ctx context.Context, issuer, name string) (keySet, error) {
	k := x.known(issuer)
	select { // one asks, and the others wait for its answer
	case k.asking <- struct{}{}:
		defer func() { <-k.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	now := x.clock.Now()
	found, err := k.keys.named(name), k.err
	if age := now.Sub(k.asked); k.asked.IsZero() || age >= lasts || age >= fresh && (len(found) == 0 || err != nil) {
		k.asked = now
		k.keys, k.err = x.ask(ctx, issuer)
		if ctx.Err() != nil {
			k.asked = time.Time{} // the sender has gone: that says nothing of the issuer
		}
		found, err = k.keys.named(name), k.err
	}
	if err != nil {
		return nil, fmt.Errorf("ask the issuer %s for its keys: %w", issuer, err)
	}
	return found, nil
}

// known is what an issuer has said.
type known struct {
	// asking is held by whoever reads or changes the fields below.
	asking chan struct{}
	keys   keySet
	err    error
	asked  time.Time

	used time.Time // guarded by Issuers.mu
}

// known returns what is kept of an issuer, in the place of the one that was not used for longest if there are too many.
func (x *Issuers) known(issuer string) *known {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.kept[issuer]
	if k == nil {
		if len(x.kept) >= mostKept {
			delete(x.kept, x.oldest())
		}
		k = &known{asking: make(chan struct{}, 1)}
		x.kept[issuer] = k
	}
	k.used = x.clock.Now()
	return k
}

func (x *Issuers) oldest() string {
	out := ""
	for issuer, k := range x.kept {
		if out == "" || k.used.Before(x.kept[out].used) {
			out = issuer
		}
	}
	return out
}
