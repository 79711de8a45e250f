package fleet

import (
	"context"
	"io"
	"net/http"
)

// Interrupt ends requests that read when ctx does, also those of libraries that
// take no context, such as discovery. Those that write are left to whoever sends
// them: what was begun may have to be taken back.
func (f *Flags) Interrupt(ctx context.Context) { f.interrupt = ctx.Done() }

// interruptible ends requests when done is closed.
type interruptible struct {
	next http.RoundTripper
	done <-chan struct{}
}

// WrappedRoundTripper lets others find the TLS settings below.
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
	case resp.StatusCode != http.StatusSwitchingProtocols: // those are closed by who has the connection
		resp.Body = &cancelling{ReadCloser: resp.Body, cancel: cancel}
	}
	return resp, err
}

// cancelling lets go of a request when its answer has been read.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the answer.
func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
