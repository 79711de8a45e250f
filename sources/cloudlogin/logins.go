package cloudlogin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/cloudtoken"
)

// Providers, as sources name them.
const (
	Amazon = "aws"
	Google = "gcp"
	Azure  = "azure"
)

// Errors that callers distinguish.
var (
	// ErrHost means that the host is none of the provider's.
	ErrHost = errors.New("unusable address")
	// ErrCredentials means that a Secret has no usable credentials of the provider.
	ErrCredentials = cloudtoken.ErrLogin
	// ErrRefused means that the cloud gives out no login for the credentials.
	ErrRefused = cloudtoken.ErrRefused
)

// Login authenticates to one host. It prints as a fixed word, so that no log or error shows it by accident.
type Login struct {
	// Username and Password are for basic authentication, and for a server of tokens.
	Username, Password string
	// Refresh is what a registry exchanges for tokens, and Bearer a token; empty where there is a password.
	Refresh, Bearer string
}

// String returns a fixed text, so that the content is not printed.
func (Login) String() string { return "(login)" }

// GoString returns a fixed text, so that the content is not printed.
func (Login) GoString() string { return "(login)" }

// Question is what a login is asked for with.
type Question struct {
	// Provider is one of the constants, and Host and Path what the URL of the source names; a registry needs no Path.
	Provider, Host, Path string
	// Secret is the data of the source's Secret.
	Secret map[string][]byte
	// Way is how the cloud is reached; its client certificate is not shown there.
	Way egress.Way
}

// secretKeys are those of Secrets, by provider: the same as for Buckets.
var secretKeys = map[string][]string{
	Amazon: {"accesskey", "secretkey"},
	Google: {"serviceaccount"},
	Azure:  {"tenantId", "clientId", "clientSecret"},
}

// In reports whether a Secret has something of the credentials of a provider.
func In(provider string, secret map[string][]byte) bool {
	return slices.ContainsFunc(secretKeys[provider], func(key string) bool { return secret[key] != nil })
}

// text returns the value of a key without the line end that editors add.
func (q Question) text(key string) string { return strings.TrimSpace(string(q.Secret[key])) }

// digest is of all that an answer depends on.
func (q Question) digest(forGit bool) [sha256.Size]byte {
	values := []string{q.Provider, q.Host, q.Path}
	for _, key := range secretKeys[q.Provider] {
		values = append(values, q.text(key))
	}
	return sha256.Sum256(fmt.Appendf(nil, "%t %q", forGit, values))
}

// Logins gets logins and keeps them. It may be used from several goroutines.
type Logins struct {
	egress egress.Dialer
	clock  clock.PassiveClock
	kept   *lru.Cache // kept by the digest of its question
}

type kept struct {
	Login
	ends time.Time
}

const (
	// most is how many logins are kept.
	most = 1024
	// margin is how long before its end a login is not used any more: a transfer takes its time.
	margin = 5 * time.Minute
	// longest is how long one is used, whatever is said of it: less of it is left when the credentials are revoked.
	longest = time.Hour
	// timeout is for all that one login takes.
	timeout = 30 * time.Second
)

// New returns Logins; it opens no connection.
func New(by egress.Dialer, now clock.PassiveClock) *Logins {
	return &Logins{egress: by, clock: now, kept: lru.New(most)}
}

// Registry returns a login for a registry. Errors: ErrHost, ErrCredentials, ErrRefused, those of package egress; others may be transient.
func (l *Logins) Registry(ctx context.Context, q Question) (Login, error) {
	by := map[string]exchange{Amazon: amazonRegistry, Google: googleRegistry, Azure: azureRegistry}[q.Provider]
	return l.get(ctx, q, false, by)
}

// Git returns a login for a Git server. Errors: those of Registry.
func (l *Logins) Git(ctx context.Context, q Question) (Login, error) {
	by := map[string]exchange{Amazon: amazonGit, Azure: azureGit}[q.Provider]
	return l.get(ctx, q, true, by)
}

// Forget drops the login that a question had as its answer, because the host has refused it.
func (l *Logins) Forget(q Question) {
	l.kept.Remove(q.digest(false))
	l.kept.Remove(q.digest(true))
}

// exchange is how credentials are exchanged for a login.
type exchange func(context.Context, asker, Question) (kept, error)

func (l *Logins) get(ctx context.Context, q Question, forGit bool, by exchange) (Login, error) {
	digest, now := q.digest(forGit), l.clock.Now()
	if have, found := l.kept.Get(digest); found && have.(kept).ends.Sub(now) > margin {
		return have.(kept).Login, nil
	}
	if by == nil {
		return Login{}, fmt.Errorf("%w: nothing of %q is known", ErrHost, q.Provider)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if q.Way.TLS = q.Way.TLS.Clone(); q.Way.TLS != nil {
		q.Way.TLS.Certificates = nil // the client's is for the host of the source
	}
	way := l.egress.Transport(q.Way)
	defer way.CloseIdleConnections()
	made, err := by(ctx, asker{now, &http.Client{
		Transport:     way,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, q)
	if err != nil {
		return Login{}, err
	}
	if limit := now.Add(longest); made.ends.After(limit) {
		made.ends = limit
	}
	l.kept.Add(digest, made)
	return made.Login, nil
}

// asker asks servers of a cloud.
type asker struct {
	now    time.Time
	client *http.Client
}

// maxAnswer is how much of an answer is read, in bytes: it has a token.
const maxAnswer = 64 << 10

// ask sends a request, and returns the status and the body of an answer that is one.
func (a asker) ask(req *http.Request) (status int, body []byte, err error) {
	failed := func(err error) error { return fmt.Errorf("ask %s for a login: %w", req.URL.Host, err) }
	req.Header.Set("User-Agent", "flotilla")
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, nil, failed(egress.Fault(err))
	}
	defer resp.Body.Close()
	if code := resp.StatusCode; code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return 0, nil, failed(fmt.Errorf("it answers HTTP %d", code))
	}
	if body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return 0, nil, failed(egress.Fault(err))
	}
	return resp.StatusCode, body, nil
}

// usable reports whether a text may go into a header.
func usable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
