package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A member may answer before it has read what the caller sends, which the caller
// then stops sending: the answer comes to its end all the same.
func TestAnswersBeforeTheBody(t *testing.T) {
	s := newStage(t)
	s.join(t, "a", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "not you")
	})
	front := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	t.Cleanup(front.CloseClientConnections)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // who hangs, hangs forever
	defer cancel()
	unsent, _ := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+prefix("a")+"/api/v1/namespaces/shop/configmaps", unsent)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(asks, "alice,dev")
	resp, err := front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != http.StatusForbidden || string(body) != "not you" {
		t.Errorf("%s %s %q, %v", resp.Proto, resp.Status, body, err)
	}
}

// What a caller sends comes as it is, whole, and its length is told.
func TestBodies(t *testing.T) {
	for name, sent := range map[string]string{"none": "", "short": "x", "longer than a buffer": strings.Repeat("0123456789", bufferSize/4)} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.join(t, "a", func(w http.ResponseWriter, req *http.Request) {
				got, err := io.ReadAll(req.Body)
				if err != nil || string(got) != sent || req.ContentLength != int64(len(sent)) {
					t.Errorf("%d bytes of %d arrive, and %d are told: %v", len(got), len(sent), req.ContentLength, err)
				}
				w.WriteHeader(http.StatusCreated)
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.front.URL+prefix("a")+"/api", strings.NewReader(sent))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(asks, "alice")
			resp, err := s.front.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != http.StatusCreated {
				t.Error(resp.Status)
			}
		})
	}
}
