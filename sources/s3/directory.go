package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Directory is a service that gives out keys for a name and a password of an LDAP directory, by the action
// AssumeRoleWithLDAPIdentity of a Security Token Service. It prints as a fixed word.
type Directory struct {
	// Endpoint is the URL of the service.
	Endpoint           string
	Username, Password string
	// TLS is as that of Access, and for this service alone.
	TLS *tls.Config
}

// String returns a fixed text, so that the content is not printed.
func (Directory) String() string { return "(directory)" }

// GoString returns a fixed text, so that the content is not printed.
func (Directory) GoString() string { return "(directory)" }

const (
	// maxLent bounds an answer with keys, in bytes.
	maxLent = 64 << 10
	// early is how long before their end keys are exchanged.
	early = time.Minute
)

// lender keeps the keys that a Directory has given out until they end.
type lender struct {
	from   Directory
	to     *url.URL
	client *http.Client
	opts   Options

	mu   sync.Mutex
	lent Keys
	ends time.Time
}

func newLender(from Directory, proxy *url.URL, opts Options) (*lender, error) {
	to, err := url.Parse(from.Endpoint)
	if err != nil || to.Scheme != "https" && to.Scheme != "http" || !isHost(to.Host) || to.User != nil {
		return nil, fmt.Errorf("%w: spec.sts.endpoint is no URL of a server, such as https://sts.example.com", ErrPlace)
	}
	return &lender{from: from, to: to, client: newClient(opts.Egress, from.TLS, proxy), opts: opts}, nil
}

// keys returns keys that do not end for a moment yet.
func (l *lender) keys(ctx context.Context) (Keys, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends.Sub(l.opts.Clock.Now()) > early {
		return l.lent, nil
	}
	keys, ends, err := l.ask(ctx)
	if err != nil {
		return Keys{}, fmt.Errorf("ask the service of spec.sts for keys: %w", err)
	}
	l.lent, l.ends = keys, ends
	return keys, nil
}

func (l *lender) ask(ctx context.Context) (Keys, time.Time, error) {
	form := url.Values{
		"Action": {"AssumeRoleWithLDAPIdentity"}, "Version": {"2011-06-15"},
		"LDAPUsername": {l.from.Username}, "LDAPPassword": {l.from.Password},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.to.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return Keys{}, time.Time{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", agent)
	resp, err := l.client.Do(req)
	if err != nil {
		return Keys{}, time.Time{}, fault(err)
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError && code != http.StatusNotImplemented:
		return Keys{}, time.Time{}, fmt.Errorf("it answered HTTP %d", code)
	case code >= 300 && code < 400:
		return Keys{}, time.Time{}, fmt.Errorf("%w (HTTP %d): name the service itself in spec.sts.endpoint", ErrRedirect, code)
	default:
		return Keys{}, time.Time{}, fmt.Errorf("%w (HTTP %d): correct username and password in the Secret of spec.sts.secretRef", ErrUnauthorized, code)
	}
	content, err := drain(resp.Body, maxLent)
	if err != nil {
		return Keys{}, time.Time{}, err
	}
	return parseLent(content)
}

// parseLent reads the answer with keys. Keys without an end are for one use. Errors: ErrMalformed.
func parseLent(content []byte) (Keys, time.Time, error) {
	var read struct {
		XMLName xml.Name `xml:"AssumeRoleWithLDAPIdentityResponse"`
		Keys    struct {
			AccessKeyID     string `xml:"AccessKeyId"`
			SecretAccessKey string
			SessionToken    string
			Expiration      time.Time
		} `xml:"AssumeRoleWithLDAPIdentityResult>Credentials"`
	}
	err := xml.NewDecoder(bytes.NewReader(content)).Decode(&read)
	keys := Keys{ID: read.Keys.AccessKeyID, Secret: read.Keys.SecretAccessKey, Token: read.Keys.SessionToken}
	if err != nil || keys.ID == "" || keys.Secret == "" || !plain(keys.ID) || !plain(keys.Token) {
		return Keys{}, time.Time{}, fmt.Errorf("%w: what it gives out are no keys", ErrMalformed)
	}
	return keys, read.Keys.Expiration, nil
}

// plain reports whether a text can be in a header.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
