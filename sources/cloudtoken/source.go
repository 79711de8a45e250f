package cloudtoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// Errors that callers distinguish.
var (
	// ErrLogin means that a Secret does not hold what it takes to ask for a token.
	ErrLogin = errors.New("unusable credentials")
	// ErrRefused means that no token is given out for it.
	ErrRefused = errors.New("no token is given out")
)

// Login is what a token is asked for with. Use ParseGoogle or ParseAzure. It prints as a fixed word.
type Login struct {
	server string
	// form is what is sent.
	form func(now time.Time) (url.Values, error)
}

// String returns a fixed text, so that the content is not printed.
func (Login) String() string { return "(login)" }

// GoString returns a fixed text, so that the content is not printed.
func (Login) GoString() string { return "(login)" }

// Source keeps a token until it ends. It may be used from several goroutines.
type Source struct {
	login  Login
	client *http.Client
	clock  clock.PassiveClock

	mu    sync.Mutex
	token string
	ends  time.Time
}

// NewSource returns a Source. The client follows no redirects.
func NewSource(login Login, client *http.Client, clock clock.PassiveClock) *Source {
	return &Source{login: login, client: client, clock: clock}
}

const (
	// early is how long before its end a token is exchanged.
	early = time.Minute
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 64 << 10
)

// Token returns a token. Errors: ErrRefused, ErrLogin, and those of the client, in words of package egress.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if s.token != "" && s.ends.Sub(now) > early {
		return s.token, nil
	}
	var err error
	if s.token, s.ends, err = Ask(ctx, s.login, s.client, now); err != nil {
		return "", err
	}
	return s.token, nil
}

// Ask asks for a token, and returns when it ends, which is within an hour. The client follows no redirects. Errors: those of
// Source.Token.
func Ask(ctx context.Context, by Login, client *http.Client, now time.Time) (token string, ends time.Time, err error) {
	form, err := by.form(now)
	if err != nil {
		return "", time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, by.server, strings.NewReader(form.Encode()))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%w: it names no server", ErrLogin)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", "flotilla")
	failed := func(err error) error { return fmt.Errorf("ask %s for a token: %w", req.URL.Host, err) }
	resp, err := client.Do(req)
	if err != nil {
		return "", time.Time{}, failed(egress.Fault(err))
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return "", time.Time{}, failed(fmt.Errorf("it answers HTTP %d", code))
	default:
		return "", time.Time{}, fmt.Errorf("%w by %s (HTTP %d)", ErrRefused, req.URL.Host, code)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", time.Time{}, failed(egress.Fault(err))
	}
	if token, ends, err = parseAnswer(body, now); err != nil {
		return "", time.Time{}, failed(err)
	}
	return token, ends, nil
}

// longest is how long a token is used, whatever its server says.
const longest = time.Hour

// parseAnswer reads a token, and when it ends.
func parseAnswer(body []byte, now time.Time) (string, time.Time, error) {
	var answer struct {
		Token string `json:"access_token"`
		Lasts int64  `json:"expires_in"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Token == "" || strings.ContainsFunc(answer.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", time.Time{}, egress.ErrAnswer
	}
	lasts := min(max(answer.Lasts, 0), int64(longest/time.Second))
	return answer.Token, now.Add(time.Duration(lasts) * time.Second), nil
}
