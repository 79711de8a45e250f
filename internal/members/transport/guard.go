package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

// mostBytes bounds one answer of a member, watches aside.
const mostBytes = 64 << 20

// errTooLarge is read from an answer that is larger than mostBytes.
var errTooLarge = fmt.Errorf("the member's answer is larger than %d bytes", mostBytes)

// mostFrame bounds one event of a watch. An object is at most a few MiB, and
// events end with a new line.
const mostFrame = 16 << 20

// errFrame is read from a watch whose event is larger than mostFrame.
var errFrame = fmt.Errorf("the member sends an event larger than %d bytes", mostFrame)

// ErrRedirect says that a member's answer was a redirect: it refuses to carry credentials to where a member points.
var ErrRedirect = errors.New("the member answers with a redirect, which is not followed")

// longestRetry is the longest time that a client may wait on its own before it
// asks again, as answers may ask it to. Whoever asked would be kept waiting.
const longestRetry = time.Second

// silence is the error of a request that a member has taken and not answered.
type silence struct{ within time.Duration }

// Error implements error.
func (e silence) Error() string { return fmt.Sprintf("the member gave no answer within %s", e.within) }

// Is says that this is an error about time.
func (e silence) Is(target error) bool { return target == context.DeadlineExceeded }

// guard stands between a member's clients and its transport: it bounds requests
// in flight, the time and the size of each answer, and reports to whoever watches over
// the member when it cannot be reached. Watches pass without a limit, but have
// to begin in time, too.
type guard struct {
	next    http.RoundTripper
	traffic *traffic
	timeout time.Duration
	gone    func() // the member could not be talked to
	slow    func() // it was, and did not answer
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if isWatch(req) {
		return g.watch(req)
	}
	if vital(req.URL.Path) {
		return g.exchange(req, func(verdict) {})
	}
	release, err := g.traffic.acquire(req.Context(), req.URL.Path)
	if err != nil {
		return nil, err
	}
	return g.exchange(req, release)
}

// vital reports whether a request asks how or who the member is: such ones are few
// and do not stand in line, or a member with much to do would count as gone.
func vital(path string) bool {
	return path == "/readyz" || path == "/healthz" || path == "/api/v1/namespaces/kube-system"
}

// watch sends a request whose answer has to begin in time, and then goes on for
// as long as it likes.
func (g *guard) watch(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(g.timeout, func() { cancel(silence{g.timeout}) })
	resp, err := g.send(req, ctx)
	timer.Stop()
	if err != nil {
		cancel(nil)
		return nil, err
	}
	limitRetry(resp)
	resp.Body = &frames{ReadCloser: resp.Body, left: mostFrame, done: func() { cancel(nil) }}
	return resp, nil
}

// exchange sends a request and calls release with what the answer says, once it
// is over.
func (g *guard) exchange(req *http.Request, release func(verdict)) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), g.timeout, silence{g.timeout})
	resp, err := g.send(req, ctx)
	if err != nil {
		cancel()
		hung := timedOut(err) && req.Context().Err() == nil
		release(verdict{nothing: !hung, crowded: hung, hung: hung})
		return nil, err
	}
	v := judge(resp)
	limitRetry(resp)
	resp.Body = &answer{ReadCloser: resp.Body, left: mostBytes, done: func(err error) {
		cancel()
		v.hung = timedOut(err) && req.Context().Err() == nil
		v.crowded = v.crowded || v.hung
		release(v)
	}}
	return resp, nil
}

// send sends a request under ctx, which is made of the request's own. Who could
// not be reached is distinguished from one that took the request and did not answer it.
func (g *guard) send(req *http.Request, ctx context.Context) (*http.Response, error) {
	var connected atomic.Bool
	resp, err := g.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})))
	if err == nil || req.Context().Err() != nil || errors.Is(err, tenure.ErrOver) && !errors.Is(err, tenure.ErrLeaseLost) { // or the caller gave up, or must not ask
		return resp, err
	}
	var reset http2.StreamError
	switch cause := (silence{}); {
	case errors.As(context.Cause(ctx), &cause) && connected.Load():
		g.slow()
		return nil, cause
	case errors.As(err, &reset):
		g.slow()
	default:
		g.gone()
	}
	return nil, err
}

// limitRetry takes out of an answer that a client is to ask again after a long
// while: it would keep whoever asked waiting. The limits on requests know it.
func limitRetry(resp *http.Response) {
	if retryAfter(resp) > longestRetry {
		resp.Header.Del("Retry-After")
	}
}

// WrappedRoundTripper lets callers find the transport below.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// judge reads from an answer whether the member has too much to do. A server
// that is out of order answers for a kind of its own only, one that has too many
// requests for all of them.
func judge(resp *http.Response) verdict {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return verdict{crowded: true, whole: resp.StatusCode == http.StatusTooManyRequests, retryAfter: retryAfter(resp)}
	default:
		return verdict{}
	}
}

// retryAfter returns how long the member asks to be left alone.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0 // it is no number, or a date, which clients do not know either
	}
	return time.Duration(min(max(seconds, 0), int(longestPause/time.Second))) * time.Second
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

// frames is the body of a watch: lines that end at a size.
type frames struct {
	io.ReadCloser
	left int
	done func()
}

// Close implements io.Closer.
func (f *frames) Close() error {
	defer f.done()
	return f.ReadCloser.Close()
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		f.left = mostFrame - (n - at - 1)
	} else {
		f.left -= n
	}
	if f.left < 0 {
		return 0, errFrame
	}
	return n, err
}

// RefuseRedirect is how a client of a member follows redirects: not at all.
func RefuseRedirect(*http.Request, []*http.Request) error { return ErrRedirect }
