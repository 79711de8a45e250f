package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

func guarded(t *testing.T, answer http.HandlerFunc) (*http.Client, *guard, string, *int) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, g, doubts := over(http.DefaultTransport)
	return c, g, server.URL, doubts
}

// over returns a client with a guard over a transport, and what it finds out: one for
// a member that is gone, a thousand for one that is silent.
func over(next http.RoundTripper) (*http.Client, *guard, *int) {
	doubts := new(int)
	g := &guard{next: next, traffic: newTraffic(clock.RealClock{}), timeout: 30 * time.Second, gone: func() { *doubts++ }, slow: func() { *doubts += 1000 }}
	return &http.Client{Transport: g, CheckRedirect: RefuseRedirect}, g, doubts
}

// pipes are connections in memory: in the bubble of a test no time passes on them.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

// Addr implements net.Listener.
func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// bubbled is guarded for a test in a bubble.
func bubbled(t *testing.T, answer http.HandlerFunc) (*http.Client, *guard, string, *int) {
	t.Helper()
	way := &pipes{conns: make(chan net.Conn), over: make(chan struct{})}
	server := &httptest.Server{Listener: way, Config: &http.Server{Handler: answer}} //nolint:gosec // its time is that of the test
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{DialContext: way.dial}
	t.Cleanup(transport.CloseIdleConnections)
	c, g, doubts := over(transport)
	return c, g, server.URL, doubts
}

func get(t *testing.T, c *http.Client, url string) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func (g *guard) idle(t *testing.T) {
	t.Helper()
	busy := g.traffic.whole.busy
	for _, kind := range g.traffic.kinds {
		busy += kind.busy
	}
	if busy != 0 {
		t.Errorf("%d places are not returned", busy)
	}
}

func TestGuardReturnsItsPlace(t *testing.T) {
	c, g, url, doubts := guarded(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	body, err := get(t, c, url)
	if err != nil || string(body) != "ok" {
		t.Errorf("answer = %q, %v", body, err)
	}
	g.idle(t)
	if *doubts != 0 {
		t.Errorf("%d doubts about a member that answers", *doubts)
	}
}

func TestGuardCutsEndlessAnswers(t *testing.T) {
	c, g, url, _ := guarded(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := strings.Repeat("x", 1<<20)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	})
	body, err := get(t, c, url)
	if !errors.Is(err, errTooLarge) || len(body) > mostBytes {
		t.Errorf("read %d bytes and %v, want at most %d and an error", len(body), err, mostBytes)
	}
	g.idle(t)
}

func TestGuardGivesUpOnSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, g, url, _ := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "s")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		start := time.Now()
		if _, err := get(t, c, url); !timedOut(err) {
			t.Errorf("error = %v, want one about time", err)
		}
		if took := time.Since(start); took != g.timeout {
			t.Errorf("gave up after %s, want %s", took, g.timeout)
		}
		g.idle(t)
		if kind := g.traffic.kind(""); int(kind.limit) != firstOfKind/2 || !kind.hung || int(g.traffic.whole.limit) != firstInFlight {
			t.Errorf("limit = %v, want half after an answer that came too late; of all %v", kind.limit, g.traffic.whole.limit)
		}
	})
}

func TestGuardCarriesNothingToWhereAMemberPoints(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(elsewhere.Close)
	c, g, url, _ := guarded(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
	if _, err := get(t, c, url); !errors.Is(err, ErrRedirect) {
		t.Errorf("error = %v, want %v", err, ErrRedirect)
	}
	if asked {
		t.Error("the redirect was followed")
	}
	g.idle(t)
}

func TestGuardHonoursRetryAfter(t *testing.T) {
	c, g, url, _ := guarded(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	before := time.Now()
	if _, err := get(t, c, url); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	g.idle(t)
	if int(g.traffic.whole.limit) != firstInFlight/2 {
		t.Errorf("limit = %v, want half of all after too many requests", g.traffic.whole.limit)
	}
	if until := g.traffic.kind("").pausedUntil; until.Before(before.Add(7*time.Second)) || until.After(after.Add(7*time.Second)) {
		t.Errorf("pauses for %s from the answer on, want 7s", until.Sub(after))
	}
}

func TestGuardAsksHowTheMemberIsInAnyCase(t *testing.T) {
	c, g, url, _ := guarded(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	var places []func(verdict)
	for range firstOfKind {
		release, err := g.traffic.acquire(t.Context(), "/api/v1/namespaces/kube-system")
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, release)
	}
	for _, path := range []string{"/readyz", "/healthz", "/api/v1/namespaces/kube-system"} {
		if body, err := get(t, c, url+path); err != nil || string(body) != "ok" {
			t.Errorf("%s = %q, %v", path, body, err)
		}
	}
	for _, release := range places {
		release(verdict{})
	}
	g.idle(t)
}

func TestGuardDoubtsAMemberThatIsGone(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	c, g, _, doubts := guarded(t, nil)
	if _, err := get(t, c, server.URL); err == nil {
		t.Error("a member that is gone answered")
	}
	if _, err := get(t, c, server.URL+"?watch=true"); err == nil {
		t.Error("a member that is gone answered")
	}
	g.idle(t)
	if *doubts != 2 {
		t.Errorf("%d doubts, want one per request", *doubts)
	}
}

// A replica that may not write to a member any more has found out nothing about it.
func TestGuardDoubtsNoMemberThatMustNotBeAsked(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	c, g, doubts := over(tenure.New(clock.RealClock{}).Member(http.DefaultTransport))
	resp, err := c.Post(server.URL, "", strings.NewReader("x"))
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, tenure.ErrOver) || asked {
		t.Errorf("error = %v, asked: %v", err, asked)
	}
	g.idle(t)
	if *doubts != 0 {
		t.Errorf("%d doubts", *doubts)
	}
}

// A program that has lost its Lease in a member has the member checked: whoever waits goes
// on when the member has proved itself, which it does not without the Lease.
func TestGuardDoubtsAMemberWithoutALease(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	c, g, doubts := over(tenure.NewMemberLease(tenure.MemberLeaseOptions{}).Member(http.DefaultTransport))
	resp, err := c.Post(server.URL, "", strings.NewReader("x"))
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, tenure.ErrLeaseLost) || asked {
		t.Errorf("error = %v, asked: %v", err, asked)
	}
	g.idle(t)
	if *doubts != 1 {
		t.Errorf("%d doubts, want one", *doubts)
	}
}

// A member that takes a request and does not answer it is looked at, and not held
// for gone; for a watch nobody waits longer than for any other answer.
func TestGuardDistinguishesSilenceFromAbsence(t *testing.T) {
	for name, path := range map[string]string{"a request": "/api/v1/pods", "a watch": "/api/v1/pods?watch=true"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, g, url, doubts := bubbled(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				_, err := get(t, c, url+path)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 30s") {
					t.Errorf("error = %v", err)
				}
				if *doubts != 1000 {
					t.Errorf("doubts = %d, want a look and nothing more", *doubts)
				}
				g.idle(t)
			})
		})
	}
}

func TestGuardLetsAWatchGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, url, _ := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "one\n")
			_ = http.NewResponseController(w).Flush()
			<-time.After(time.Hour) // of the bubble
			_, _ = io.WriteString(w, "two\n")
		})
		if body, err := get(t, c, url+"/api/v1/pods?watch=true"); err != nil || string(body) != "one\ntwo\n" {
			t.Errorf("watched %q, %v", body, err)
		}
	})
}

func TestGuardLetsNoMemberKeepAClientWaiting(t *testing.T) {
	for after, want := range map[string]string{"1": "1", "2": "", "100000000000000000000": "", "31536000": "", "soon": "soon"} {
		c, _, url, _ := guarded(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q reaches the client as %q, want %q", after, got, want)
		}
	}
}

// Where one request of many on a connection is broken off, the others go on.
func TestGuardKeepsAMemberThatBreaksOffOneRequest(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	_, g, _, doubts := guarded(t, nil)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		g.next = next
		return g
	})
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, c, server.URL); err == nil {
		t.Error("there was an answer")
	}
	if *doubts != 1000 {
		t.Errorf("doubts = %d, want a look and nothing more", *doubts)
	}
}
