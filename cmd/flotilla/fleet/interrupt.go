package fleet

import (
	"context"
	"io"
	"net/http"
)

// Interrupt cancels read requests when ctx ends, also those of libraries that take no context,
// such as discovery. It leaves write requests to their senders: what was begun may have to be
// undone.
func (f *Flags) Interrupt(ctx context.Context) { f.interrupt = ctx.Done() }

// interruptible cancels requests when done is closed.
type interruptible struct {
	next http.RoundTripper
	done <-chan struct{}
}

// WrappedRoundTripper gives access to the TLS settings of the wrapped transport.
func (i *interruptible) WrappedRoundTripper() http.RoundTripper { return i.next }

// RoundTrip sends a request.
func (i *interruptible) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return i.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancel(req.Context())
	go func() {
		select {
		case <-i.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	resp, err := i.next.RoundTrip(req.WithContext(ctx))
	switch {
	case err != nil:
		cancel()
	case resp.StatusCode != http.StatusSwitchingProtocols: // the owner of the connection closes those
		resp.Body = &cancelling{ReadCloser: resp.Body, cancel: cancel}
	}
	return resp, err
}

// cancelling releases the context of a request when its response is closed.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the response.
func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
