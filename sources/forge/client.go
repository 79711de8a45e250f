package forge

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// client sends requests to one forge over HTTP.
type client struct {
	dialect dialect
	name    string // for messages
	header  http.Header
	http    *http.Client
	timeout time.Duration
	app     *githubapp.App // nil where the header has a token
	tokens  *githubapp.Tokens
	// act is what the client does, what is the kind of object that it writes, and
	// refused explains why the forge may refuse one. All are for messages.
	act, what, refused string
	most               int64 // bytes of a response that are read
}

func newClient(p Provider, d dialect, name string, opts Options) (*client, error) {
	header := http.Header{}
	for key, value := range d.headers {
		header.Set(key, value)
	}
	app, err := appOf(p)
	if err != nil {
		return nil, err
	}
	if app == nil {
		key, value, err := d.auth(p.Secret)
		if err != nil {
			return nil, err
		}
		header.Set(key, value)
	}
	config, err := tlsConfig(p.Certificates)
	if err != nil {
		return nil, err
	}
	return &client{
		app: app, tokens: opts.Tokens,
		dialect: d, name: name, header: header, timeout: opts.Timeout, most: maxAnswer, act: "post status to", what: "commit statuses", refused: d.refused,
		http: &http.Client{
			Transport: opts.Egress.Transport(egress.Way{TLS: config}),
			// Redirects are not followed: they would send the token or the status to
			// another address.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// appOf returns the GitHub App of a provider; nil for none.
func appOf(p Provider) (*githubapp.App, error) {
	if !githubapp.In(p.Secret) {
		return nil, nil
	}
	if p.Type != typeGitHub {
		return nil, fmt.Errorf("%w: the Secret has the keys of a GitHub App, which are for the type %s alone", ErrProvider, typeGitHub)
	}
	app, err := githubapp.Parse(p.Secret)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	return &app, nil
}

// authorize adds a token of the App to a request, if there is one.
func (c *client) authorize(req *http.Request) error {
	if c.app == nil {
		return nil
	}
	token, err := c.tokens.Token(req.Context(), *c.app, c.http.Transport)
	switch {
	case errors.Is(err, githubapp.ErrRefused):
		return fmt.Errorf("%s %s: %w: %w", c.act, c.name, ErrUnauthorized, err)
	case errors.Is(err, githubapp.ErrAnswer):
		return fmt.Errorf("%s %s: %w: %w", c.act, c.name, ErrProvider, err)
	case err != nil:
		return fmt.Errorf("%s %s: %w", c.act, c.name, err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// tlsConfig returns the TLS configuration for certificates in the format of a
// GitRepository's Secret.
func tlsConfig(certificates map[string][]byte) (*tls.Config, error) {
	data := map[string][]byte{}
	for _, key := range []string{"ca.crt", "caFile", "tls.crt", "tls.key", "certFile", "keyFile"} {
		if v, ok := certificates[key]; ok {
			data[key] = v
		}
	}
	cred, err := git.ParseCredentials("https://localhost/repository", data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	if cred.TLS == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	return cred.TLS, nil
}

// answer is the response of a forge.
type answer struct {
	code   int
	header http.Header
	text   []byte
}

// ask sends a request, with body as JSON unless it is nil.
func (c *client) ask(ctx context.Context, method, address string, body any) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	content := []byte(nil)
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return answer{}, fmt.Errorf("%w: address: %w", ErrProvider, err)
	}
	req.Header = c.header.Clone()
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "flotilla")
	if err := c.authorize(req); err != nil {
		return answer{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, c.fault(err)
	}
	if resp.StatusCode == http.StatusUnauthorized && c.app != nil {
		c.tokens.Forget(*c.app)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, c.most))
	if err != nil {
		return answer{}, c.fault(err)
	}
	return answer{code: resp.StatusCode, header: resp.Header, text: text}, nil
}

// fault returns a transport error without any content of the response.
func (c *client) fault(err error) error {
	return fmt.Errorf("%s %s: %w", c.act, c.name, egress.Fault(err))
}

// maxAnswer is how much of a response is read, in bytes.
const maxAnswer = 8 << 20

// outcome returns the error that a response means; a successful response must be
// a JSON object or list, or empty if the dialect is silent. accepts may be nil;
// it reports whether a refusal nevertheless means success.
func (c *client) outcome(a answer, accepts func(code int, message string) bool) error {
	switch {
	case slices.Contains(c.dialect.signIn, a.code) && !isValue(a.text):
		return fmt.Errorf("%s %s: %w", c.act, c.name, c.unauthorized(a.code))
	case a.code == http.StatusNoContent && c.dialect.silent:
		return nil
	case a.code >= 200 && a.code < 300 && !isValue(a.text):
		return fmt.Errorf("%s %s: %w: what answers (%s) is no forge, but maybe the page of a proxy or a login: change the provider's address", c.act, c.name, ErrProvider, named(a.code))
	case a.code >= 200 && a.code < 300:
		return nil
	}
	words := message(a.text)
	if accepts != nil && accepts(a.code, words) {
		return nil
	}
	if after, limited := retryAfter(a, words); limited {
		return fmt.Errorf("%s %s: %w", c.act, c.name, &RateLimitError{After: after})
	}
	return fmt.Errorf("%s %s: %w", c.act, c.name, c.refusal(a.code, words))
}

// isValue reports whether a response is a JSON object or list, as the responses
// of forges are.
func isValue(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text)
}

// refusal returns the error that a status code means. The message only
// distinguishes cases and is not shown: the server that responds need not be a
// forge.
func (c *client) refusal(code int, message string) error {
	switch {
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: the forge redirects (%s); if the repository moved, change the provider's address", ErrProvider, named(code))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return c.unauthorized(code)
	case code == http.StatusNotFound,
		(code == http.StatusUnprocessableEntity || code == http.StatusBadRequest) && strings.Contains(strings.ToLower(message), "no commit found"):
		return fmt.Errorf("%w (%s): check the provider's address, and what the token may see", ErrNotFound, named(code))
	case code == http.StatusUnprocessableEntity || code == http.StatusBadRequest:
		return fmt.Errorf("%w (%s): %s", ErrStatus, named(code), c.refused)
	default:
		return fmt.Errorf("the forge answered %s", named(code))
	}
}

func (c *client) unauthorized(code int) error {
	return fmt.Errorf("%w (%s): the token must be valid, and needs the right to write %s", ErrUnauthorized, named(code), c.what)
}

// named returns a status code with its standard text.
func named(code int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
}

// message returns the error message in a response. It is used to distinguish
// faults and is never shown.
func message(text []byte) string {
	var answer struct {
		Message any `json:"message"`
		Error   any `json:"error"`
	}
	if json.Unmarshal(text, &answer) == nil {
		switch {
		case answer.Message != nil:
			return fmt.Sprint(answer.Message)
		case answer.Error != nil:
			return fmt.Sprint(answer.Error)
		}
	}
	return string(text)
}

// Bounds of the wait after a rate limit; defaultWait applies if the forge names
// no time.
const (
	minWait     = time.Second
	defaultWait = time.Minute
	maxWait     = time.Hour
)

// retryAfter returns how long to wait if the response is a rate limit. Absolute
// times are compared with the response's own Date header, not with the local
// clock.
func retryAfter(a answer, message string) (time.Duration, bool) {
	spent := a.header.Get("X-RateLimit-Remaining") == "0" || a.header.Get("RateLimit-Remaining") == "0" ||
		strings.Contains(strings.ToLower(message), "rate limit") // GitHub's secondary limit may come without a header
	asked := a.header.Get("Retry-After")
	limited := a.code == http.StatusTooManyRequests ||
		(a.code == http.StatusForbidden && (spent || asked != "")) ||
		(a.code == http.StatusServiceUnavailable && asked != "")
	if !limited {
		return 0, false
	}
	now, dated := parseDate(a.header.Get("Date"))
	wait := defaultWait
	if seconds, err := strconv.ParseInt(asked, 10, 64); err == nil {
		wait = inSeconds(seconds)
	} else if at, ok := parseDate(asked); ok && dated {
		wait = at.Sub(now)
	} else if dated {
		for _, key := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
			if at, err := strconv.ParseInt(a.header.Get(key), 10, 64); err == nil {
				wait = untilReset(at, now)
			}
		}
	}
	return min(max(wait, minWait), maxWait), true
}

// untilReset returns the time until a rate limit is renewed. Most forges send
// Unix seconds, some the number of seconds left.
func untilReset(at int64, now time.Time) time.Duration {
	if at < int64(maxWait/time.Second) {
		return inSeconds(at)
	}
	return time.Unix(at, 0).Sub(now)
}

// inSeconds returns a number of seconds as a Duration between 0 and maxWait, so
// that it cannot overflow.
func inSeconds(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), int64(maxWait/time.Second))) * time.Second
}

func parseDate(s string) (time.Time, bool) {
	at, err := http.ParseTime(s)
	return at, err == nil
}
