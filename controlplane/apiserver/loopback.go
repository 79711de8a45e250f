package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// loopback is a round trip to a server in this process: through all its
// handlers, but over no connection and without TLS, which would be a fifth of the
// cost of a write.
type loopback struct{ handler http.Handler }

// RoundTrip returns when the handler has answered, or flushed the first part of
// an answer that goes on. Its errors are those of the request's context, and
// io.ErrUnexpectedEOF for a handler that gave up.
func (l loopback) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	x := &exchange{ctx: ctx, header: http.Header{}, answered: make(chan struct{}), cancel: cancel}
	x.changed.L = &x.mu
	go x.serve(l.handler, arrived(ctx, req))
	select {
	case <-x.answered:
		return x.response(req)
	case <-ctx.Done():
		_ = x.Close() // what is still written goes nowhere
		return nil, ctx.Err()
	}
}

// CancelRequest has nothing to do: a request ends with its context. Without it, who
// asks by a context that ends, as a watch does, would get the answer that this cannot be done.
func (loopback) CancelRequest(*http.Request) {}

// arrived is a client's request as a server sees it.
func arrived(ctx context.Context, req *http.Request) *http.Request {
	in := req.Clone(ctx) // handlers change headers
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	in.RequestURI = req.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// maxBuffered is how much of an answer is buffered before its handler waits for the reader.
const maxBuffered = 1 << 20

// spared is how much memory an answer keeps at most when all of it was read: a
// watch lasts far longer than the list that it begins with.
const spared = 64 << 10

// exchange is the response writer of a handler and the body of its answer.
type exchange struct {
	ctx      context.Context //nolint:containedctx // of the request that this is
	header   http.Header
	answered chan struct{} // closed by the first flush, or the end
	cancel   context.CancelFunc

	mu      sync.Mutex
	changed sync.Cond
	sent    http.Header // what header was with the answer
	code    int         // zero until the answer begins
	content bytes.Buffer
	streams bool  // the handler has flushed
	done    bool  // the handler has returned
	left    bool  // the client has closed the body
	err     error // why the handler gave up
}

func (x *exchange) serve(handler http.Handler, req *http.Request) {
	defer func() { _ = req.Body.Close() }()
	defer func() { x.end(recover()) }()
	handler.ServeHTTP(x, req)
}

// end marks the end of the answer, whole unless the handler panicked: servers
// abort an answer that way, and have logged why.
func (x *exchange) end(panicked any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done = true
	if panicked != nil {
		x.err = fmt.Errorf("the server gave up: %w", io.ErrUnexpectedEOF)
	}
	x.begin(http.StatusOK)
	if !x.streams {
		close(x.answered)
	}
	x.changed.Broadcast()
}

// begin fixes code and headers, the first time it is called. mu is held.
func (x *exchange) begin(code int) {
	if x.code == 0 {
		x.code, x.sent = code, x.header.Clone()
	}
}

// Header is for the handler, until it answers.
func (x *exchange) Header() http.Header { return x.header }

// WriteHeader begins the answer.
func (x *exchange) WriteHeader(code int) {
	if code < http.StatusOK && code != http.StatusSwitchingProtocols {
		return // interim answers are not passed on
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begin(code)
}

// Write adds to the answer. It waits for a reader that is far behind.
func (x *exchange) Write(content []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begin(http.StatusOK)
	for x.streams && x.content.Len() > maxBuffered && !x.left {
		x.changed.Wait()
	}
	if x.left {
		return 0, io.ErrClosedPipe
	}
	n, err := x.content.Write(content)
	x.changed.Broadcast()
	return n, err
}

// Flush hands over what was written so far; the client need not wait for the rest.
func (x *exchange) Flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begin(http.StatusOK)
	if !x.streams {
		x.streams = true
		close(x.answered)
	}
}

// CloseNotify is asked for by handlers that wrap their writer. The end of the
// request's context is what shows them that the client has gone.
func (x *exchange) CloseNotify() <-chan bool { return nil }

func (x *exchange) response(req *http.Request) (*http.Response, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil && !x.streams {
		x.cancel()
		return nil, x.err
	}
	length := int64(-1)
	if !x.streams {
		length = int64(x.content.Len())
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", x.code, http.StatusText(x.code)),
		StatusCode:    x.code,
		Proto:         "HTTP/2.0",
		ProtoMajor:    2,
		Header:        x.sent,
		Body:          x,
		ContentLength: length,
		Request:       req,
	}, nil
}

// Read is for the client: it waits for what the handler has not written yet.
func (x *exchange) Read(into []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.content.Len() == 0 && !x.done && !x.left {
		x.changed.Wait()
	}
	switch {
	case x.left:
		return 0, http.ErrBodyReadAfterClose
	case x.content.Len() > 0:
		x.changed.Broadcast()
		n, err := x.content.Read(into)
		if x.content.Len() == 0 && x.content.Cap() > spared {
			x.content = bytes.Buffer{}
		}
		return n, err
	case x.err != nil:
		return 0, x.err
	case x.streams && x.ctx.Err() != nil: // what came is not all
		return 0, x.ctx.Err()
	}
	return 0, io.EOF
}

// Close ends the request: a handler that still works on it is cancelled.
func (x *exchange) Close() error {
	x.cancel()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left = true
	x.content = bytes.Buffer{}
	x.changed.Broadcast()
	return nil
}
