package keyservice

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// Options configure Services. Zero fields take the default.
type Options struct {
	// Egress decides which addresses are reached.
	Egress egress.Dialer
	// Clouds has the services of clouds asked, too. See package clouds.
	Clouds bool
	// TLS has the authorities to trust. Default: the system's.
	TLS *tls.Config
	// Clock returns the time of signatures. Default: the system's.
	Clock clock.PassiveClock
	// Timeout is for one question. Default 10 s.
	Timeout time.Duration
}

// Services asks all services. Use New.
type Services struct {
	opts   Options
	client *http.Client
}

// New returns Services; it opens no connection.
func New(opts Options) *Services {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second
	}
	return &Services{opts: opts, client: &http.Client{
		Transport:     opts.Egress.Transport(egress.Way{TLS: opts.TLS}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// refusal is an error about a recipient, with the class of package sops.
type refusal struct {
	is   error
	text string
	// away means that it would be the same for any other key of the service.
	away bool
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Unwrap returns an error of package sops.
func (r *refusal) Unwrap() error { return r.is }

// refused says that a service did not open a key; wrong that nothing else will; missing that there are no credentials.
func refused(format string, args ...any) error {
	return &refusal{is: sops.ErrService, text: fmt.Sprintf(format, args...)}
}

// away is refused, where the service answers nobody.
func away(format string, args ...any) error {
	return &refusal{is: sops.ErrService, text: fmt.Sprintf(format, args...), away: true}
}

func wrong(format string, args ...any) error {
	return &refusal{is: sops.ErrInvalid, text: fmt.Sprintf(format, args...)}
}

func missing(format string, args ...any) error {
	return &refusal{is: sops.ErrNoKey, text: fmt.Sprintf(format, args...)}
}

// maxAnswer is how much of an answer is read, in bytes: it has a key, or a token.
const maxAnswer = 64 << 10

// answer is what a service said.
type answer struct {
	status int
	body   []byte
}

// ask sends a request. who is what the service is called. Error: that the service cannot be asked.
func (s *Services) ask(ctx context.Context, who string, req *http.Request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	req.Header.Set("User-Agent", "flotilla")
	resp, err := s.client.Do(req.WithContext(ctx))
	if err != nil {
		return answer{}, away("%s cannot be asked: %v", who, egress.Fault(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, away("%s cannot be asked: %v", who, egress.Fault(err))
	case len(body) > maxAnswer:
		return answer{}, away("the answer of %s has more than %d bytes: is it the right server?", who, maxAnswer)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return answer{}, away("%s redirects (HTTP %d), which is not followed with credentials: encrypt for the address that it leads to", who, resp.StatusCode)
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return answer{}, away("%s cannot answer now (HTTP %d)", who, resp.StatusCode)
	}
	return answer{resp.StatusCode, body}, nil
}

// post returns a request with a body.
func post(ctx context.Context, to, kind string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, wrong("its address is no URL")
	}
	req.Header.Set("Content-Type", kind)
	return req, nil
}

const asJSON = "application/json"
