package tenure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Header carries the epoch of a write to the hub: the resource version of the Lease
// EpochName. Whoever sends it has its write refused unless that is the present one;
// without it nothing is compared.
const Header = "Flotilla-Epoch"

// Refusal is part of the hub's answer to a write of a former epoch.
const Refusal = "the epoch of this write is over"

// errSuperseded is why a tenure is over whose epoch the hub has refused.
var errSuperseded = errors.New("another replica has taken over")

// Hub returns a transport for writes to the hub: they carry the epoch, and end with
// the tenure. Reads pass.
func (t *Tenure) Hub(next http.RoundTripper) http.RoundTripper { return &hubCarrier{t, next} }

// Member returns a transport for writes to a member: they end with the tenure, there
// too. Reads pass.
func (t *Tenure) Member(next http.RoundTripper) http.RoundTripper { return &memberCarrier{t, next} }

type hubCarrier struct {
	tenure *Tenure
	next   http.RoundTripper
}

// WrappedRoundTripper lets callers find the transport below.
func (c *hubCarrier) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper. Errors: ErrOver.
func (c *hubCarrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if reads(req) {
		return c.next.RoundTrip(req)
	}
	epoch, left, err := c.tenure.now()
	if err != nil {
		return refuse(req, err)
	}
	out, cancel := within(req, left)
	out.Header.Set(Header, epoch)
	resp, err := c.next.RoundTrip(out)
	if err != nil {
		return nil, c.tenure.failed(req, cancel, err)
	}
	if resp.StatusCode == http.StatusInternalServerError && refused(resp) {
		_ = resp.Body.Close()
		c.tenure.end(errSuperseded)
		return nil, c.tenure.failed(req, cancel, errSuperseded)
	}
	resp.Body = &body{resp.Body, cancel}
	return resp, nil
}

type memberCarrier struct {
	tenure *Tenure
	next   http.RoundTripper
}

// WrappedRoundTripper lets callers find the transport below.
func (c *memberCarrier) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper. Errors: ErrOver.
func (c *memberCarrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if reads(req) {
		return c.next.RoundTrip(req)
	}
	left, leave, err := c.tenure.enter()
	if err != nil {
		return refuse(req, err)
	}
	out, cancel := within(req, left)
	resp, err := c.next.RoundTrip(out)
	leave(err == nil)
	if err != nil {
		return nil, c.tenure.failed(req, cancel, err)
	}
	resp.Body = &body{resp.Body, cancel}
	return resp, nil
}

// failed returns the error of a request without an answer. An error caused by the tenure's end
// is replaced by the reason of that end.
func (t *Tenure) failed(req *http.Request, cancel context.CancelFunc, err error) error {
	cancel()
	if over := t.Holds(); over != nil && req.Context().Err() == nil {
		return over
	}
	return err
}

// refuse answers for a transport that does not send: it has to close the body.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, err
}

func reads(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}

// within returns the request with a timeout here, and one in the URL by which the server
// gives up as well: this process may be paused by then.
func within(req *http.Request, left time.Duration) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(req.Context(), left)
	out := req.Clone(ctx)
	query := out.URL.Query()
	if asked, err := time.ParseDuration(query.Get("timeout")); err != nil || asked <= 0 || asked > left {
		setTimeout(out.URL, query, left)
	}
	return out, cancel
}

func setTimeout(u *url.URL, query url.Values, left time.Duration) {
	query.Set("timeout", max(left.Truncate(time.Millisecond), time.Millisecond).String())
	u.RawQuery = query.Encode()
}

// mostRefusal is how many bytes of an answer are searched for the hub's refusal.
const mostRefusal = 4 << 10

// refused reports whether an answer says that the epoch is over. The answer can still be read as
// before.
func refused(resp *http.Response) bool {
	start, err := io.ReadAll(io.LimitReader(resp.Body, mostRefusal))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), resp.Body}
	return bytes.Contains(start, []byte(Refusal))
}

type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// body ends the request's context once it was read.
type body struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// DialFunc makes connections.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial returns a dial function whose connections send nothing once the tenure is over:
// what a paused process had encrypted but not sent is never sent. No connection is
// made then, nor before the tenure has begun. Dial nil means the machine's network. Errors:
// ErrOver.
func (t *Tenure) Dial(dial DialFunc) DialFunc {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := t.Holds(); err != nil {
			return nil, err
		}
		inner, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{inner, t}, nil
	}
}

// conn is a connection that sends nothing once the tenure is over.
type conn struct {
	net.Conn
	tenure *Tenure
}

// Write implements io.Writer.
func (c *conn) Write(content []byte) (int, error) {
	if err := c.tenure.Holds(); err != nil {
		return 0, fmt.Errorf("send to %s: %w", c.RemoteAddr(), errors.Join(err, c.Close()))
	}
	return c.Conn.Write(content)
}
