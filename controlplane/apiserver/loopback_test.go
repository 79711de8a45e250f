package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
)

// TestRequestsThatEndSayNothing: clients that give up ask the round tripper to end a
// request, and log it if that knows of no such thing.
func TestRequestsThatEndSayNothing(t *testing.T) {
	output := ""
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { output += args }, funcr.Options{}))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://own/path", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := transport.NewUserAgentRoundTripper("x", loopback{http.NotFoundHandler()})
	client.(interface{ CancelRequest(*http.Request) }).CancelRequest(req)
	if output != "" {
		t.Errorf("it says %s", output)
	}
}

func TestLoopback(t *testing.T) {
	type outcome struct {
		Code   int
		Header string
		Body   string
		Length int64
	}
	cases := map[string]struct {
		handler http.HandlerFunc
		want    outcome
		wantErr error
	}{
		"an answer": {func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X", r.Header.Get("X")+r.RequestURI)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
			w.Header().Set("X", "too late")
		}, outcome{http.StatusCreated, "y/path?q=1", "body", 4}, nil},
		"nothing said": {func(http.ResponseWriter, *http.Request) {}, outcome{Code: http.StatusOK}, nil},
		"an answer in parts": {func(w http.ResponseWriter, _ *http.Request) {
			for _, part := range []string{"a", "b", "c"} {
				_, _ = io.WriteString(w, part)
				w.(http.Flusher).Flush()
			}
		}, outcome{http.StatusOK, "", "abc", -1}, nil},
		"interim answers are passed over": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusContinue)
			w.WriteHeader(http.StatusTeapot)
		}, outcome{Code: http.StatusTeapot}, nil},
		"more than waits for a reader": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			for range 5 {
				_, _ = w.Write(make([]byte, maxBuffered))
			}
		}, outcome{http.StatusOK, "", strings.Repeat("\x00", 5*maxBuffered), -1}, nil},
		"a handler that aborts":                  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, outcome{}, io.ErrUnexpectedEOF},
		"a handler that aborts after some parts": {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); panic(http.ErrAbortHandler) }, outcome{Code: http.StatusOK, Length: -1}, io.ErrUnexpectedEOF},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://own/path?q=1", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X", "y")
			got, err := answer(loopback{tc.handler}, req)
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, outcome(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func answer(l loopback, req *http.Request) (out struct {
	Code   int
	Header string
	Body   string
	Length int64
}, err error) {
	resp, err := l.RoundTrip(req)
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	out.Code, out.Header, out.Body, out.Length = resp.StatusCode, resp.Header.Get("X"), string(body), resp.ContentLength
	return out, err
}

// A client that goes away ends the handler, whether it was answered yet or not.
func TestLoopbackEndsTheRequestWhenTheClientHasGone(t *testing.T) {
	cases := map[string]struct {
		flush bool
		leave func(cancel context.CancelFunc, resp *http.Response)
	}{
		"before the answer":                  {false, func(cancel context.CancelFunc, _ *http.Response) { cancel() }},
		"in the middle of it":                {true, func(cancel context.CancelFunc, _ *http.Response) { cancel() }},
		"in the middle, by closing the body": {true, func(_ context.CancelFunc, resp *http.Response) { _ = resp.Body.Close() }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan error, 1)
				l := loopback{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tc.flush {
						w.(http.Flusher).Flush()
					}
					<-r.Context().Done()
					_, err := w.Write([]byte("late"))
					gone <- err
				})}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://own/", nil)
				if err != nil {
					t.Fatal(err)
				}
				if !tc.flush {
					go func() {
						synctest.Wait()
						cancel()
					}()
				}
				resp, err := l.RoundTrip(req)
				if tc.flush {
					if err != nil {
						t.Fatal(err)
					}
					tc.leave(cancel, resp)
				} else if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want that the request was cancelled", err)
				}
				<-gone
			})
		})
	}
}

// A watch that began with a long list does not keep the memory of it.
func TestLoopbackSparesMemory(t *testing.T) {
	x := &exchange{header: http.Header{}, answered: make(chan struct{}), cancel: func() {}}
	x.changed.L = &x.mu
	x.Flush()
	kept := map[int]int{}
	for _, size := range []int{spared / 4, 4 * spared} {
		if _, err := x.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(x, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		kept[size] = min(x.content.Cap(), 1)
	}
	if diff := cmp.Diff(map[int]int{spared / 4: 1, 4 * spared: 0}, kept); diff != "" {
		t.Errorf("whether memory is kept, by the size of what was read (-want +got):\n%s", diff)
	}
}
