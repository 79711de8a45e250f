package apiserver

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

var errBeyond = errors.New("left the process")

type beyond struct{}

func (beyond) RoundTrip(*http.Request) (*http.Response, error) { return nil, errBeyond }

func TestInProcess(t *testing.T) {
	transport := &inProcess{
		next: beyond{},
		paths: map[string]http.Handler{"/convert": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte("heard " + string(asked)))
		})},
	}
	ask := func(path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://kubernetes.default.svc:443"+path, strings.NewReader("this"))
		if err != nil {
			t.Fatal(err)
		}
		return transport.RoundTrip(req)
	}

	res, err := ask("/convert")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body); res.StatusCode != http.StatusTeapot || got != "heard this" || res.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("answered %d %q with %v", res.StatusCode, got, res.Header)
	}

	if _, err := ask("/other"); !errors.Is(err, errBeyond) {
		t.Errorf("another path was not passed on: %v", err)
	}
}
