package forge

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
)

// dialect is how one kind of forge wants a status.
type dialect struct {
	// segments is how many parts a repository's name has; 0 means any number.
	segments int
	// base turns the repository's host into the API's address.
	base func(host *url.URL) string
	// path is where a status is posted, below base.
	path func(repository []string, commit string) string
	// body is what is posted.
	body func(s Status) map[string]string
	// header authenticates.
	header func(token string) (key, value string)
	// accepts reports whether a refusal means that all is well.
	accepts func(s Status, code int, message string) bool
}

// dialects by Provider type.
var dialects = map[string]dialect{
	"github": {
		segments: 2,
		base: func(host *url.URL) string {
			if strings.EqualFold(host.Host, "github.com") {
				return "https://api.github.com"
			}
			return host.String() + "/api/v3"
		},
		path:   func(r []string, commit string) string { return "/repos/" + escape(r) + "/statuses/" + commit },
		body:   plainBody,
		header: func(token string) (string, string) { return "Authorization", "Bearer " + token },
	},
	"gitea": {
		segments: 2,
		base:     func(host *url.URL) string { return host.String() + "/api/v1" },
		path:     func(r []string, commit string) string { return "/repos/" + escape(r) + "/statuses/" + commit },
		body:     plainBody,
		header:   func(token string) (string, string) { return "Authorization", "token " + token },
	},
	"gitlab": {
		base: func(host *url.URL) string { return host.String() + "/api/v4" },
		path: func(r []string, commit string) string {
			return "/projects/" + url.PathEscape(strings.Join(r, "/")) + "/statuses/" + commit
		},
		body: func(s Status) map[string]string {
			return without(map[string]string{"state": gitlabState(s.State), "name": s.Context, "description": s.Description, "target_url": s.TargetURL})
		},
		header:  func(token string) (string, string) { return "PRIVATE-TOKEN", token },
		accepts: sameState,
	},
}

func escape(parts []string) string {
	out := make([]string, len(parts))
	for n, p := range parts {
		out[n] = url.PathEscape(p)
	}
	return strings.Join(out, "/")
}

func plainBody(s Status) map[string]string {
	return without(map[string]string{"state": string(s.State), "context": s.Context, "description": s.Description, "target_url": s.TargetURL})
}

// without drops empty fields.
func without(m map[string]string) map[string]string {
	for k, v := range m {
		if v == "" {
			delete(m, k)
		}
	}
	return m
}

func gitlabState(s State) string {
	if s == Failure {
		return "failed"
	}
	return string(s)
}

// sameState accepts GitLab's refusal to set a state that is set already.
func sameState(s Status, code int, message string) bool {
	return code == http.StatusBadRequest && strings.Contains(message, "Cannot transition status") &&
		strings.Contains(message, "from :"+gitlabState(s.State))
}

// client posts statuses over HTTP.
type client struct {
	dialect    dialect
	base       string
	repository []string
	name       string // for messages
	token      string
	http       *http.Client
	timeout    time.Duration
}

var _ Poster = (*client)(nil)

func newClient(p Provider, d dialect, host *url.URL, repository []string, opts Options) (*client, error) {
	token := strings.TrimSpace(string(p.Secret["token"]))
	if token == "" {
		return nil, fmt.Errorf("%w: the Secret has no key token", ErrProvider)
	}
	config, err := tlsConfig(p.Certificates)
	if err != nil {
		return nil, err
	}
	return &client{
		dialect: d, base: d.base(host), repository: repository, name: host.Host + "/" + strings.Join(repository, "/"),
		token: token, timeout: opts.Timeout,
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
	body, err := json.Marshal(c.dialect.body(status))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+c.dialect.path(c.repository, status.Commit), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: address: %w", ErrProvider, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "flotilla")
	req.Header.Set(c.dialect.header(c.token))
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
	return fmt.Errorf("post status to %s: %w", c.name, refusal(code, words))
}

// isObject reports whether an answer is a JSON object, as a forge's is that took a status.
func isObject(text []byte) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(text, &object) == nil
}

// refusal says what a status means. It shows nothing of the forge's own words: what
// answers need not be a forge.
func refusal(code int, message string) error {
	switch {
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: the forge redirects (%s); if the repository moved, change the provider's address", ErrProvider, answer(code))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w (%s): the token must be valid, and needs the right to write commit statuses", ErrUnauthorized, answer(code))
	case code == http.StatusNotFound,
		(code == http.StatusUnprocessableEntity || code == http.StatusBadRequest) && strings.Contains(strings.ToLower(message), "no commit found"):
		return fmt.Errorf("%w (%s): check the provider's address, and what the token may see", ErrNotFound, answer(code))
	case code == http.StatusUnprocessableEntity || code == http.StatusBadRequest:
		return fmt.Errorf("%w (%s): a commit takes so many statuses of a context and no more, and the token may not set those of others", ErrStatus, answer(code))
	default:
		return fmt.Errorf("the forge answered %s", answer(code))
	}
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
