package forge

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
)

// client posts statuses over HTTP.
type client struct {
	dialect dialect
	place   place
	name    string // for messages
	header  http.Header
	http    *http.Client
	timeout time.Duration
}

var _ Poster = (*client)(nil)

func newClient(p Provider, d dialect, at place, name string, opts Options) (*client, error) {
	header := http.Header{}
	for key, value := range d.headers {
		header.Set(key, value)
	}
	key, value, err := d.auth(p.Secret)
	if err != nil {
		return nil, err
	}
	header.Set(key, value)
	config, err := tlsConfig(p.Certificates)
	if err != nil {
		return nil, err
	}
	return &client{
		dialect: d, place: at, name: name, header: header, timeout: opts.Timeout,
		http: &http.Client{
			Transport: &http.Transport{DialContext: opts.Egress.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute},
			// A redirect would take the token or the status elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// tlsConfig reads certificates in the format of a GitRepository's Secret.
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

// Post puts the status on its commit.
func (c *client) Post(ctx context.Context, status Status) error {
	status, err := status.clean()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.dialect.links != nil && !c.dialect.links(status.TargetURL) {
		status.TargetURL = c.place.page + status.Commit
	}
	body, err := json.Marshal(c.dialect.body(status))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.place.before+status.Commit+c.place.after, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: address: %w", ErrProvider, err)
	}
	req.Header = c.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "flotilla")
	resp, err := c.http.Do(req)
	if err != nil {
		return c.fault(err)
	}
	defer resp.Body.Close()
	return c.outcome(status, resp)
}

// fault says what went wrong on the way. It shows nothing of what was answered.
func (c *client) fault(err error) error {
	return fmt.Errorf("post status to %s: %w", c.name, egress.Fault(err))
}

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// outcome says what an answer means.
func (c *client) outcome(status Status, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	code := resp.StatusCode
	switch {
	case err != nil:
		return c.fault(err)
	case slices.Contains(c.dialect.signIn, code) && !isObject(text):
		return fmt.Errorf("post status to %s: %w", c.name, unauthorized(code))
	case code == http.StatusNoContent && c.dialect.silent:
		return nil
	case code >= 200 && code < 300 && !isObject(text):
		return fmt.Errorf("post status to %s: %w: what answers (%s) is no forge, but maybe the page of a proxy or a login: change the provider's address", c.name, ErrProvider, answer(code))
	case code >= 200 && code < 300:
		return nil
	}
	words := message(text)
	if c.dialect.accepts != nil && c.dialect.accepts(status, code, words) {
		return nil
	}
	if after, limited := retryAfter(resp, words); limited {
		return fmt.Errorf("post status to %s: %w", c.name, &RateLimitError{After: after})
	}
	return fmt.Errorf("post status to %s: %w", c.name, c.refusal(code, words))
}

// isObject reports whether an answer is a JSON object, as a forge's is that took a status.
func isObject(text []byte) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(text, &object) == nil
}

// refusal says what a status means. It shows nothing of the forge's own words: what
// answers need not be a forge.
func (c *client) refusal(code int, message string) error {
	switch {
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: the forge redirects (%s); if the repository moved, change the provider's address", ErrProvider, answer(code))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return unauthorized(code)
	case code == http.StatusNotFound,
		(code == http.StatusUnprocessableEntity || code == http.StatusBadRequest) && strings.Contains(strings.ToLower(message), "no commit found"):
		return fmt.Errorf("%w (%s): check the provider's address, and what the token may see", ErrNotFound, answer(code))
	case code == http.StatusUnprocessableEntity || code == http.StatusBadRequest:
		return fmt.Errorf("%w (%s): %s", ErrStatus, answer(code), c.dialect.refused)
	default:
		return fmt.Errorf("the forge answered %s", answer(code))
	}
}

func unauthorized(code int) error {
	return fmt.Errorf("%w (%s): the token must be valid, and needs the right to write commit statuses", ErrUnauthorized, answer(code))
}

// answer names a status by its number and its usual words.
func answer(code int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
}

// message returns a forge's own words. They tell faults apart, and are not shown.
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

const (
	minWait     = time.Second
	defaultWait = time.Minute
	maxWait     = time.Hour
)

// retryAfter says how long a forge wants to be left alone, if it does. Times
// of day are read against the answer's own date.
func retryAfter(resp *http.Response, message string) (time.Duration, bool) {
	spent := resp.Header.Get("X-RateLimit-Remaining") == "0" || resp.Header.Get("RateLimit-Remaining") == "0" ||
		strings.Contains(strings.ToLower(message), "rate limit") // GitHub's secondary one may come without a header
	asked := resp.Header.Get("Retry-After")
	limited := resp.StatusCode == http.StatusTooManyRequests ||
		(resp.StatusCode == http.StatusForbidden && (spent || asked != "")) ||
		(resp.StatusCode == http.StatusServiceUnavailable && asked != "")
	if !limited {
		return 0, false
	}
	now, dated := parseDate(resp.Header.Get("Date"))
	wait := defaultWait
	if seconds, err := strconv.ParseInt(asked, 10, 64); err == nil {
		wait = inSeconds(seconds)
	} else if at, ok := parseDate(asked); ok && dated {
		wait = at.Sub(now)
	} else if dated {
		for _, key := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
			if at, err := strconv.ParseInt(resp.Header.Get(key), 10, 64); err == nil {
				wait = untilReset(at, now)
			}
		}
	}
	return min(max(wait, minWait), maxWait), true
}

// untilReset reads when a budget is renewed: the seconds since 1970 with most
// forges, the seconds to come with some.
func untilReset(at int64, now time.Time) time.Duration {
	if at < int64(maxWait/time.Second) {
		return inSeconds(at)
	}
	return time.Unix(at, 0).Sub(now)
}

// inSeconds returns a duration that a forge names, without overflowing.
func inSeconds(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), int64(maxWait/time.Second))) * time.Second
}

func parseDate(s string) (time.Time, bool) {
	at, err := http.ParseTime(s)
	return at, err == nil
}
