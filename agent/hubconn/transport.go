package hubconn

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// transport sends requests while the hub is there.
type transport struct {
	conn *Connection
	next http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*transport)(nil)

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper. Requests before the first probe wait for its
// result.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-t.conn.asked:
	case <-req.Context().Done():
	}
	if away := t.conn.Away(); away != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		return nil, &awayError{why: away}
	}
	if !t.conn.options.picked(req) {
		return t.send(req)
	}
	ctx, leave, held := t.conn.pass(req.Context())
	if held != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &awayError{why: held}
	}
	answer, err := t.send(req.WithContext(ctx))
	if err != nil {
		leave()
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, cancel: sync.OnceFunc(leave)}
	return answer, nil
}

// send sends a request, and concludes from its outcome whether the hub is there.
func (t *transport) send(req *http.Request) (*http.Response, error) {
	asked := req.Context()
	if req.URL.Query().Get("watch") == "" {
		ctx, cancel := context.WithTimeout(asked, t.conn.options.Timeout)
		answer, err := t.next.RoundTrip(req.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, t.judge(asked, err)
		}
		answer.Body = &body{ReadCloser: answer.Body, cancel: sync.OnceFunc(cancel)}
		return t.weigh(answer)
	}
	answer, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, t.judge(asked, err)
	}
	return t.weigh(answer)
}

// judge distinguishes a hub that is away from a caller that has given up.
func (t *transport) judge(asked context.Context, err error) error {
	if asked.Err() != nil {
		return err
	}
	t.conn.lost(err)
	return &awayError{why: err}
}

// weigh finds answers that mean that the hub is away: those of a proxy in front of it, and
// those that every request would get.
func (t *transport) weigh(answer *http.Response) (*http.Response, error) {
	var why error
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		why = ErrRefused
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		why = errors.New("it answers " + answer.Status)
	default:
		t.conn.compareClocks(answer)
		return answer, nil
	}
	_ = answer.Body.Close()
	t.conn.lost(why)
	return nil, &awayError{why: why}
}

// body cancels the timeout of its request when it is closed.
type body struct {
	io.ReadCloser
	cancel func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
