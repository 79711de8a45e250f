package forge_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// TestThisMachineIsNotReached checks that a Provider cannot make us connect to
// the control plane's own machine.
func TestThisMachineIsNotReached(t *testing.T) {
	s := newServer(t, http.StatusCreated, nil, "{}")
	addresses := map[string]string{forge.TypeGitNotes: s.URL + "/o/r"}
	for kind, path := range paths {
		addresses[kind] = s.URL + path
	}
	for kind, address := range addresses {
		p, err := forge.New(forge.Provider{Type: kind, Address: address, Secret: map[string][]byte{"token": []byte(canary)}}, forge.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
		if err == nil || !strings.Contains(err.Error(), "address not allowed: 127.0.0.1 leads to a loopback address") {
			t.Errorf("%s: error = %v, want a refusal", kind, err)
		}
	}
	if len(s.got) > 0 {
		t.Errorf("%d requests were sent", len(s.got))
	}
}

// TestProxiesOfTheEnvironment checks that statuses go by the proxy of the Dialer, and not to a forge where none may be.
func TestProxiesOfTheEnvironment(t *testing.T) {
	s := newServer(t, http.StatusCreated, nil, "{}") // takes what a proxy is sent as it takes what a forge is
	out := egress.Dialer{
		Proxies: func(*url.URL) (*url.URL, error) { return url.Parse(s.URL) },
		LookupNetIP: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	}
	for address, want := range map[string]string{"http://git.example.com/o/r": "", "http://10.0.0.1/o/r": "a private address"} {
		p, err := forge.New(forge.Provider{Type: "gitea", Address: address, Secret: map[string][]byte{"token": []byte(canary)}}, forge.Options{Egress: out})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v, want one saying %q", address, err, want)
		}
	}
	if len(s.got) == 0 {
		t.Error("nothing went by the proxy")
	}
}

// TestNothingOfAnAnswerIsShown checks that no error shows any part of a response
// of a server that need not be a forge.
func TestNothingOfAnAnswerIsShown(t *testing.T) {
	const secret = "CANARY-of-somebody-else"
	for _, code := range []int{302, 400, 401, 403, 404, 409, 418, 422, 429, 500, 503} {
		for _, body := range []string{secret, `{"message":"` + secret + `"}`, `{"error":"` + secret + `"}`, `{"message":"no commit found ` + secret + `"}`} {
			s := newServer(t, code, map[string]string{"Location": "http://" + secret + "/"}, body)
			for kind, path := range paths {
				err := poster(t, kind, s.URL+path).Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
				if err == nil || strings.Contains(err.Error(), secret) {
					t.Errorf("%s answers %d: error = %v, want one that shows nothing of it", kind, code, err)
				}
			}
		}
	}
	for _, answer := range []string{secret, "HTTP/1.1 2" + secret + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = conn.Write([]byte(answer + "\r\n"))
				_ = conn.Close()
			}
		}))
		err := poster(t, "gitea", s.URL+"/o/r").Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("what is not HTTP: error = %v, want one that shows nothing of it", err)
		}
		s.Close()
	}
}
