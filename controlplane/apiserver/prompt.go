package apiserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

const (
	// refill is how soon a client that was answered that the server's cache of a kind is being filled
	// asks again, the first time; then each time twice as late. Filling takes some ten
	// milliseconds, and the answer says a second: loops that start would wait it out kind
	// by kind.
	refill = 10 * time.Millisecond
	// refills is how often: for 1.3 s in all. What takes longer is waited for as the
	// answer says.
	refills = 7
	// filling is how an answer begins to say so; an error that keeps it from being filled
	// would follow.
	filling = "storage is (re)initializing"
)

// prompt asks again soon where a look at a kind came too early. In goes what a client
// within this process asks; out comes what the server answers, or what it has last answered.
type prompt struct {
	next  http.RoundTripper
	clock clock.Clock
}

// RoundTrip is next's, but for looks that come too early.
func (p prompt) RoundTrip(req *http.Request) (*http.Response, error) {
	pause := refill
	for range refills {
		resp, err := p.next.RoundTrip(req)
		if err != nil || req.Method != http.MethodGet || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		content, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(content))
		if !bytes.Contains(content, []byte(filling)) || bytes.Contains(content, []byte(filling+":")) {
			return resp, nil
		}
		timer := p.clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-req.Context().Done():
			timer.Stop()
			return resp, nil
		}
		pause *= 2
	}
	return p.next.RoundTrip(req)
}

// CancelRequest has nothing to do: see loopback's.
func (prompt) CancelRequest(*http.Request) {}
