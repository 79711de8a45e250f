package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

// session is how a registry wants to be asked, as far as it has said so.
type session struct {
	// basic is for basic authentication with each request.
	basic bool
	// challenge is where tokens come from; the zero value for no tokens.
	challenge challenge
	token     string
	ends      time.Time
}

// challenge is what a registry answers to who has not said who he is.
type challenge struct {
	scheme, realm, service, scope string
}

// authorize puts credentials on a request to the registry.
func (s *session) authorize(req *http.Request, login Login) {
	switch {
	case s.basic:
		req.SetBasicAuth(login.Username, login.Password)
	case s.token != "":
		req.Header.Set("Authorization", "Bearer "+s.token)
	case login.RegistryToken != "":
		req.Header.Set("Authorization", "Bearer "+login.RegistryToken)
	}
}

// renew gets another token in place of one that has ended, which saves the question that would be refused.
func (r *registry) renew(ctx context.Context) error {
	if r.session.token == "" || r.clock.Now().Before(r.session.ends) {
		return nil
	}
	return r.identify(ctx, r.session.challenge)
}

// answer does what a registry asks for that has refused a request.
func (r *registry) answer(ctx context.Context, refused http.Header) error {
	c, known := challengeOf(refused)
	switch {
	case !known, r.session.basic, r.login.RegistryToken != "":
		r.session = session{}
		return r.denied(http.StatusUnauthorized)
	case c.scheme == "basic" && (r.login.Username == "" || r.login.Password == ""):
		return r.denied(http.StatusUnauthorized)
	case c.scheme == "basic":
		r.session = session{basic: true}
		return nil
	default:
		return r.identify(ctx, c)
	}
}

// challengeOf returns the challenge that is taken up: one for tokens rather than one for a password.
func challengeOf(header http.Header) (challenge, bool) {
	var out challenge
	for _, text := range header.Values("WWW-Authenticate") {
		switch c := parseChallenge(text); {
		case c.scheme == "bearer" && c.realm != "":
			return c, true
		case c.scheme == "basic":
			out = c
		}
	}
	return out, out.scheme != ""
}

// parseChallenge reads the first challenge of a header.
func parseChallenge(text string) challenge {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	c := challenge{scheme: strings.ToLower(scheme)}
	for {
		key, after, found := strings.Cut(strings.TrimLeft(rest, " ,"), "=")
		if !found || strings.ContainsAny(key, " ,") { // another challenge
			return c
		}
		value := ""
		value, rest = parameter(after)
		switch strings.ToLower(key) {
		case "realm":
			c.realm = value
		case "service":
			c.service = value
		case "scope":
			c.scope = value
		}
	}
}

// parameter cuts off the value, which may be quoted, of a parameter.
func parameter(text string) (value, rest string) {
	quoted, is := strings.CutPrefix(text, `"`)
	if !is {
		end := strings.IndexAny(text, ", ")
		if end < 0 {
			return text, ""
		}
		return text[:end], text[end:]
	}
	var out strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch {
		case quoted[i] == '"':
			return out.String(), quoted[i+1:]
		case quoted[i] == '\\' && i+1 < len(quoted):
			i++
			fallthrough
		default:
			out.WriteByte(quoted[i])
		}
	}
	return out.String(), ""
}

const (
	// maxToken is the size of the answer of a server of tokens, in bytes.
	maxToken = 64 << 10
	// shortToken is how long a token lives if nothing is said of it, and soonOver how long before its end another is asked for.
	shortToken, soonOver = time.Minute, 5 * time.Second
)

// identify gets a token.
func (r *registry) identify(ctx context.Context, c challenge) error {
	r.session = session{challenge: c}
	realm, err := r.realm(c)
	if err != nil {
		return err
	}
	req, err := r.tokenRequest(ctx, realm, c)
	if err != nil {
		return err
	}
	client := *r.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // credentials are on it
	resp, err := client.Do(req)
	if err != nil {
		return r.fault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return fmt.Errorf("%w: by the server of tokens", ErrRedirect)
	}
	if err := r.judge(resp); err != nil {
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrStatus) {
			return r.denied(resp.StatusCode)
		}
		return err
	}
	content, err := read(resp.Body, maxToken, "the answer of the server of tokens")
	if err != nil {
		return err
	}
	var token struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if json.Unmarshal(content, &token) != nil || token.Token+token.AccessToken == "" {
		return fmt.Errorf("%w: the server of tokens gives none", ErrMalformed)
	}
	if r.session.token = token.Token; r.session.token == "" {
		r.session.token = token.AccessToken
	}
	lives := shortToken
	if token.ExpiresIn > 0 {
		lives = time.Duration(min(token.ExpiresIn, int64(longestPause/time.Second))) * time.Second
	}
	r.session.challenge, r.session.ends = c, r.clock.Now().Add(lives-soonOver)
	return nil
}

// realm returns the server of tokens that a challenge names. Credentials go to one of the registry's own domain only.
func (r *registry) realm(c challenge) (*url.URL, error) {
	realm, err := url.Parse(c.realm)
	switch {
	case err != nil || realm.Host == "" || realm.User != nil:
		return nil, fmt.Errorf("%w: the registry names no server of tokens", ErrMalformed)
	case realm.Scheme != "https" && (realm.Scheme != "http" || r.base.Scheme != "http"):
		return nil, fmt.Errorf("%w: to a server of tokens without TLS", ErrRedirect)
	case !r.login.anonymous() && !sameDomain(realm.Hostname(), r.base.Hostname()):
		return nil, fmt.Errorf("%w: the registry wants the login to be sent to a host of another domain", ErrRedirect)
	}
	return realm, nil
}

// sameDomain reports whether two hosts belong to whoever has registered the same domain.
func sameDomain(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return true
	}
	if _, err := netip.ParseAddr(a); err == nil {
		return false
	}
	ofA, errA := publicsuffix.EffectiveTLDPlusOne(a)
	ofB, errB := publicsuffix.EffectiveTLDPlusOne(b)
	return errA == nil && errB == nil && ofA == ofB
}

// tokenRequest is how a token is asked for: with the login, or, where there is an identity token, with that.
func (r *registry) tokenRequest(ctx context.Context, realm *url.URL, c challenge) (*http.Request, error) {
	scope, reads := c.scope, "repository:"+r.repository+":pull"
	if scope == "" {
		scope = reads
	}
	if scope == reads && r.writes { // once for all that follows
		scope += ",push"
	}
	values := realm.Query()
	values.Set("scope", scope)
	if c.service != "" {
		values.Set("service", c.service)
	}
	if r.login.IdentityToken == "" {
		to := *realm
		to.RawQuery = values.Encode()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
		if err == nil && r.login.Username != "" {
			req.SetBasicAuth(r.login.Username, r.login.Password)
		}
		return req, err
	}
	values.Set("grant_type", "refresh_token")
	values.Set("refresh_token", r.login.IdentityToken)
	values.Set("client_id", agent)
	to := *realm
	to.RawQuery = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(values.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, err
}
