package webhook

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// roundTripper answers as it says, without a network.
type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// lateEnd is a body that ends, as if it were whole, once its request's time is over.
type lateEnd struct{ request *http.Request }

func (b lateEnd) Read([]byte) (int, error) {
	<-b.request.Context().Done()
	return 0, io.EOF
}

func (lateEnd) Close() error { return nil }

// A server that sees the connection go ends its body in good order, and the
// client may read that end before it notices that the time is over.
func TestAnAnswerCutShortByTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hook{timeout: time.Second, url: "https://hook", client: &http.Client{
			Transport: roundTripper(func(r *http.Request) *http.Response {
				return &http.Response{StatusCode: http.StatusOK, Body: lateEnd{r}}
			}),
		}}
		_, _, err := h.post(t.Context(), &sent{})
		if want := "no answer within 1s"; err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	})
}
