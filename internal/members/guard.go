package members

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// mostBytes bounds one answer of a member, watches aside.
const mostBytes = 64 << 20

// errTooLarge is read from an answer that is larger than mostBytes.
var errTooLarge = fmt.Errorf("the member's answer is larger than %d bytes", mostBytes)

// errRedirect refuses to carry credentials to where a member points.
var errRedirect = errors.New("the member answers with a redirect, which is not followed")

// guard stands between a member's clients and its transport: it bounds requests
// in flight, the time and the size of each answer, and tells who watches over
// the member when it cannot be reached. Watches pass without a limit.
type guard struct {
	next    http.RoundTripper
	limiter *limiter
	timeout time.Duration
	suspect func()
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") == "true" {
		resp, err := g.next.RoundTrip(req)
		if unreachable(req.Context(), err) {
			g.suspect()
		}
		return resp, err
	}
	if vital(req.URL.Path) {
		return g.exchange(req, func(verdict) {})
	}
	if err := g.limiter.acquire(req.Context()); err != nil {
		return nil, err
	}
	return g.exchange(req, g.limiter.release)
}

// vital says whether a request asks how or who the member is: such ones are few
// and do not stand in line, or a member with much to do would count as gone.
func vital(path string) bool {
	return path == "/readyz" || path == "/healthz" || path == "/api/v1/namespaces/kube-system"
}

// exchange sends a request and calls release with what the answer says, once it
// is over.
func (g *guard) exchange(req *http.Request, release func(verdict)) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), g.timeout)
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		release(verdict{crowded: timedOut(err) && req.Context().Err() == nil})
		if unreachable(req.Context(), err) {
			g.suspect()
		}
		return nil, err
	}
	resp.Body = &answer{ReadCloser: resp.Body, left: mostBytes, done: func(err error) {
		cancel()
		v := judge(resp)
		v.crowded = v.crowded || timedOut(err)
		release(v)
	}}
	return resp, nil
}

// WrappedRoundTripper lets callers find the transport below.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// judge reads from an answer whether the member has too much to do.
func judge(resp *http.Response) verdict {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return verdict{}
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		seconds = 0
	}
	return verdict{crowded: true, retryAfter: time.Duration(seconds) * time.Second}
}

// unreachable says whether err means that the member could not be talked to,
// rather than that the caller gave up.
func unreachable(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil
}

func timedOut(err error) bool {
	if err == nil {
		return false
	}
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// answer is a body that ends at a size, and that reports once when it is over.
type answer struct {
	io.ReadCloser
	left int64
	err  error
	once sync.Once
	done func(error)
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		a.err = errTooLarge
		return 0, errTooLarge
	}
	n, err := a.ReadCloser.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.once.Do(func() { a.done(a.err) })
	return err
}

func refuseRedirect(*http.Request, []*http.Request) error { return errRedirect }
