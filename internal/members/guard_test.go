package members

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

func guarded(t *testing.T, answer http.HandlerFunc) (*http.Client, *guard, string, *int) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	doubts := new(int)
	g := &guard{next: http.DefaultTransport, limiter: newLimiter(clock.RealClock{}), timeout: 30 * time.Second, suspect: func() { *doubts++ }}
	return &http.Client{Transport: g, CheckRedirect: refuseRedirect}, g, server.URL, doubts
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
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	if g.limiter.busy != 0 {
		t.Errorf("%d places are not returned", g.limiter.busy)
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
	c, g, url, _ := guarded(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "s")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	g.timeout = 500 * time.Millisecond
	start := time.Now()
	if _, err := get(t, c, url); !timedOut(err) {
		t.Errorf("error = %v, want one about time", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("gave up after %s", took)
	}
	g.idle(t)
	if int(g.limiter.limit) != firstInFlight/2 {
		t.Errorf("limit = %v, want half after an answer that came too late", g.limiter.limit)
	}
}

func TestGuardCarriesNothingToWhereAMemberPoints(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(elsewhere.Close)
	c, g, url, _ := guarded(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
	if _, err := get(t, c, url); !errors.Is(err, errRedirect) {
		t.Errorf("error = %v, want %v", err, errRedirect)
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
	if until := g.limiter.pausedUntil; until.Before(before.Add(7*time.Second)) || until.After(after.Add(7*time.Second)) {
		t.Errorf("pauses for %s from the answer on, want 7s", until.Sub(after))
	}
}

func TestGuardAsksHowTheMemberIsInAnyCase(t *testing.T) {
	c, g, url, _ := guarded(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	for range firstInFlight {
		if err := g.limiter.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/readyz", "/healthz", "/api/v1/namespaces/kube-system"} {
		if body, err := get(t, c, url+path); err != nil || string(body) != "ok" {
			t.Errorf("%s = %q, %v", path, body, err)
		}
	}
	for range firstInFlight {
		g.limiter.release(verdict{})
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
