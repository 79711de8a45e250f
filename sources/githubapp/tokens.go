package githubapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/flotilla-io/flotilla/internal/egress"
)

var (
	// ErrRefused means that GitHub does not give a token for the keys of the Secret.
	ErrRefused = errors.New("GitHub refuses the App")
	// ErrAnswer means that what answers is not GitHub's API.
	ErrAnswer = errors.New("what answers is not the API of GitHub: check " + keyBaseURL)
)

// Tokens gets tokens and keeps them until they are about to expire. It may be used from several goroutines.
type Tokens struct {
	clock clock.PassiveClock
	kept  *lru.Cache // token by the digest of an App
}

type token struct {
	text    string
	expires time.Time
}

const (
	// most is how many tokens are kept.
	most = 1024
	// margin is how long before its end a token is not used any more: a transfer takes its time.
	margin = 5 * time.Minute
)

// NewTokens returns an empty Tokens.
func NewTokens(now clock.PassiveClock) *Tokens {
	return &Tokens{clock: now, kept: lru.New(most)}
}

// Token returns a token of the App. Errors: ErrRefused, ErrAnswer, egress.NotAllowedError; others may be transient.
func (t *Tokens) Token(ctx context.Context, a App, by http.RoundTripper) (string, error) {
	if kept, found := t.kept.Get(a.digest); found && kept.(token).expires.Sub(t.clock.Now()) > margin {
		return kept.(token).text, nil
	}
	made, err := t.fetch(ctx, a, by)
	if err != nil {
		return "", fmt.Errorf("token of a GitHub App: %w", err)
	}
	t.kept.Add(a.digest, made)
	return made.text, nil
}

// Forget drops the token of an App, because a server has refused it.
func (t *Tokens) Forget(a App) { t.kept.Remove(a.digest) }

func (t *Tokens) fetch(ctx context.Context, a App, by http.RoundTripper) (token, error) {
	claim, err := a.claim(t.clock.Now())
	if err != nil {
		return token{}, err
	}
	c := api{base: a.api, claim: claim, client: &http.Client{
		Transport:     by,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	installation := a.installation
	if installation == "" {
		if installation, err = c.find(ctx, a.owner); err != nil {
			return token{}, err
		}
	}
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	if err := c.ask(ctx, http.MethodPost, "/app/installations/"+installation+"/access_tokens", http.StatusCreated, &answer); err != nil {
		return token{}, err
	}
	if !usable(answer.Token) || answer.Expires.IsZero() {
		return token{}, ErrAnswer
	}
	return token{text: answer.Token, expires: answer.Expires}, nil
}

// maxToken is how long a token may be, in bytes.
const maxToken = 1 << 10

// usable reports whether a text may go into a header.
func usable(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return text != "" && len(text) <= maxToken
}

// api is GitHub's, as an App asks it.
type api struct {
	base, claim string
	client      *http.Client
}

// find returns the installation that an organization or a user has.
func (c api) find(ctx context.Context, owner string) (string, error) {
	var err error
	for _, kind := range []string{"orgs", "users"} {
		var answer struct {
			ID int64 `json:"id"`
		}
		err = c.ask(ctx, http.MethodGet, "/"+kind+"/"+owner+"/installation", http.StatusOK, &answer)
		if err == nil && answer.ID <= 0 {
			return "", ErrAnswer
		}
		if err == nil {
			return fmt.Sprint(answer.ID), nil
		}
		if !errors.Is(err, errNotFound) {
			return "", err
		}
	}
	return "", err
}

// errNotFound is an ErrRefused.
var errNotFound = fmt.Errorf("%w (HTTP 404): it is not installed there, or the key is of another App", ErrRefused)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// ask sends a request and reads the answer into out.
func (c api) ask(ctx context.Context, method, path string, want int, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return ErrAnswer
	}
	req.Header.Set("Authorization", "Bearer "+c.claim)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("User-Agent", "flotilla")
	resp, err := c.client.Do(req)
	if err != nil {
		return egress.Fault(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case want:
	case http.StatusNotFound:
		return errNotFound
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w (HTTP %d): check %s and %s, and that the installation is not suspended", ErrRefused, resp.StatusCode, keyID, keyPrivate)
	default:
		return fmt.Errorf("GitHub's API answered HTTP %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return egress.Fault(err)
	}
	if json.Unmarshal(text, out) != nil {
		return ErrAnswer
	}
	return nil
}
