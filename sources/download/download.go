// Package download gets one file by its URL, for sources whose artifact others have made.
//
// In go a URL and a limit; out come the bytes, or an error in words of this package's own. Connections are opened by
// internal/egress only. Redirects are not followed: who writes the URL names where the file is. No credentials are sent. The
// package writes nothing, and unpacks nothing.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// Errors that callers distinguish.
var (
	// ErrURL means that a URL is none of a file.
	ErrURL = errors.New("unusable URL")
	// ErrNotFound means that the server has no such file.
	ErrNotFound = errors.New("not found")
	// ErrRefused means that the server does not hand out the file.
	ErrRefused = errors.New("refused")
	// ErrTooLarge means that the file is larger than the limit.
	ErrTooLarge = errors.New("too large")
)

// Options configure a Client. Zero fields take the default.
type Options struct {
	// Egress decides which addresses are reached.
	Egress egress.Dialer
	// Timeout is for a file. Default 60 s.
	Timeout time.Duration
	// Limit is the size of a file, in bytes. Default 50 MiB.
	Limit int64
}

// Client gets files. It may be used from several goroutines.
type Client struct {
	opts   Options
	client *http.Client
}

// New returns a Client; it opens no connection.
func New(opts Options) *Client {
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	if opts.Limit == 0 {
		opts.Limit = 50 << 20
	}
	return &Client{opts: opts, client: &http.Client{
		Transport:     opts.Egress.Transport(egress.Way{}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get returns the bytes of a file. Errors: ErrURL, ErrNotFound, ErrRefused, ErrTooLarge, egress.ErrNotAllowed,
// egress.ErrRedirect and others.
func (c *Client) Get(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	from, err := url.Parse(address)
	if err != nil || from.Scheme != "http" && from.Scheme != "https" || from.Hostname() == "" || from.User != nil {
		return nil, fmt.Errorf("%w: it has to be http:// or https://, with a host and without a user", ErrURL)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: it has to be http:// or https://, with a host and without a user", ErrURL)
	}
	req.Header.Set("User-Agent", "flotilla")
	req.Header.Set("Accept-Encoding", "identity") // a digest is of what is sent
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("get it from %s: %w", from.Host, egress.Fault(err))
	}
	defer resp.Body.Close()
	content, err := c.read(resp)
	if err != nil {
		return nil, fmt.Errorf("get it from %s: %w", from.Host, err)
	}
	return content, nil
}

func (c *Client) read(resp *http.Response) ([]byte, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusNotFound, code == http.StatusGone:
		return nil, fmt.Errorf("%w (HTTP %d)", ErrNotFound, code)
	case code >= 300 && code < 400:
		return nil, fmt.Errorf("%w (HTTP %d): the URL has to be that of the file", egress.ErrRedirect, code)
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests:
		return nil, fmt.Errorf("the server answered HTTP %d", code)
	default:
		return nil, fmt.Errorf("%w (HTTP %d)", ErrRefused, code)
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, c.opts.Limit+1))
	if err != nil {
		return nil, egress.Fault(err)
	}
	if int64(len(content)) > c.opts.Limit {
		return nil, fmt.Errorf("it has more than %d bytes: %w", c.opts.Limit, ErrTooLarge)
	}
	return content, nil
}
