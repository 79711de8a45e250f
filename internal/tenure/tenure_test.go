package tenure

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// began returns a tenure that has begun now.
func began(t *testing.T) (*Tenure, *clocktesting.FakeClock) {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	tenure := New(c)
	if err := tenure.begin("7", c.Now()); err != nil {
		t.Fatal(err)
	}
	return tenure, c
}

func TestHowLongATenureLasts(t *testing.T) {
	type step = func(t *Tenure, c *clocktesting.FakeClock)
	wait := func(d time.Duration) step { return func(_ *Tenure, c *clocktesting.FakeClock) { c.Step(d) } }
	renew := func(ago time.Duration) step {
		return func(t *Tenure, c *clocktesting.FakeClock) { _ = t.renewed(c.Now().Add(-ago)) }
	}
	cases := map[string]struct {
		steps []step
		want  string // empty: it is held
	}{
		"it is held once it has begun":                                {nil, ""},
		"it is held until just before the deadline":                   {[]step{wait(RenewDeadline - 1)}, ""},
		"it is over at the deadline":                                  {[]step{wait(RenewDeadline)}, "not renewed within 10s"},
		"a renewal counts from when it was sent":                      {[]step{wait(8 * time.Second), renew(time.Second), wait(9 * time.Second)}, "not renewed"},
		"it goes on with renewals":                                    {[]step{wait(8 * time.Second), renew(0), wait(8 * time.Second), renew(0), wait(8 * time.Second)}, ""},
		"a renewal that is answered after the deadline is too late":   {[]step{wait(12 * time.Second), renew(11 * time.Second)}, "not renewed"},
		"a renewal that was sent after the deadline brings none back": {[]step{wait(12 * time.Second), renew(0)}, "not renewed"},
		"it is over when another is seen to have it":                  {[]step{func(t *Tenure, _ *clocktesting.FakeClock) { t.end(errors.New("b has it")) }}, "b has it"},
		"it is over when it was given up":                             {[]step{func(t *Tenure, _ *clocktesting.FakeClock) { _ = t.giveUp() }}, "given up"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenure, clock := began(t)
			for _, step := range c.steps {
				step(tenure, clock)
			}
			err := tenure.Holds()
			if c.want == "" && err == nil {
				return
			}
			if c.want == "" || !errors.Is(err, ErrOver) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// arrived is what a server saw of a request.
type arrived struct{ Method, Epoch, Timeout string }

// server answers as configured, and records what arrived.
func server(t *testing.T, answer http.HandlerFunc) (url string, seen func() []arrived) {
	t.Helper()
	requests := make(chan arrived, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		requests <- arrived{req.Method, req.Header.Get(Header), req.URL.Query().Get("timeout")}
		answer(w, req)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []arrived {
		var out []arrived
		for len(requests) > 0 {
			out = append(out, <-requests)
		}
		return out
	}
}

func send(t *testing.T, way http.RoundTripper, method, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := way.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content), nil
}

func TestWritesEndWithTheTenure(t *testing.T) {
	fine := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }
	for name, way := range map[string]func(*Tenure) http.RoundTripper{
		"hub":    func(t *Tenure) http.RoundTripper { return t.Hub(&http.Transport{DisableKeepAlives: true}) },
		"member": func(t *Tenure) http.RoundTripper { return t.Member(&http.Transport{DisableKeepAlives: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			tenure, clock := began(t)
			url, seen := server(t, fine)
			carrier := way(tenure)
			clock.Step(4 * time.Second)
			for _, request := range [][2]string{{"PATCH", ""}, {"DELETE", "?timeout=2s"}, {"POST", "?timeout=1m"}, {"GET", ""}} {
				if content, err := send(t, carrier, request[0], url+request[1]); err != nil || content != "fine" {
					t.Errorf("%s: %q, %v", request[0], content, err)
				}
			}
			epoch := map[string]string{"hub": "7"}[name]
			want := []arrived{{"PATCH", epoch, "6s"}, {"DELETE", epoch, "2s"}, {"POST", epoch, "6s"}, {"GET", "", ""}}
			if diff := cmp.Diff(want, seen()); diff != "" {
				t.Errorf("arrived (-want +got):\n%s", diff)
			}
			clock.Step(6 * time.Second)
			for _, method := range []string{"PATCH", "DELETE", "POST", "PUT"} {
				if _, err := send(t, carrier, method, url); !errors.Is(err, ErrOver) {
					t.Errorf("%s afterwards: %v", method, err)
				}
			}
			if late := seen(); len(late) > 0 {
				t.Errorf("after the tenure arrived %v", late)
			}
			if _, err := send(t, carrier, "GET", url); err != nil {
				t.Errorf("a read afterwards: %v", err)
			}
		})
	}
}

func TestBeforeItHasBegunNothingIsWritten(t *testing.T) {
	tenure := New(clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	url, seen := server(t, func(http.ResponseWriter, *http.Request) {})
	for _, way := range []http.RoundTripper{tenure.Hub(http.DefaultTransport), tenure.Member(http.DefaultTransport)} {
		if _, err := send(t, way, "PUT", url); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
	}
	if early := seen(); len(early) > 0 {
		t.Errorf("arrived %v", early)
	}
	if err := tenure.Lost(); err != nil {
		t.Errorf("what was never held is lost: %v", err)
	}
}

func TestTheHubsRefusalEndsTheTenure(t *testing.T) {
	cases := map[string]struct {
		code    int
		content string
		over    bool
	}{
		"its refusal":           {500, `{"message":"rpc error: code = FailedPrecondition desc = flotilla: ` + Refusal + `"}`, true},
		"another fault":         {500, strings.Repeat("other ", 2000), false},
		"a word about it":       {200, Refusal, false},
		"what it does not like": {422, Refusal, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenure, _ := began(t)
			url, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.content)
			})
			content, err := send(t, tenure.Hub(&http.Transport{DisableKeepAlives: true}), "PUT", url)
			if errors.Is(err, ErrOver) != c.over || (tenure.Lost() != nil) != c.over {
				t.Errorf("%v, lost: %v", err, tenure.Lost())
			}
			if !c.over && content != c.content {
				t.Errorf("the answer is %.20q…, want %.20q…", content, c.content)
			}
		})
	}
}

// TestWhatWasWrittenBeforeIsNotSentAfter has a connection stand when the tenure ends:
// a process that is stopped may have passed all checks before.
func TestWhatWasWrittenBeforeIsNotSentAfter(t *testing.T) {
	tenure, clock := began(t)
	near, far := net.Pipe()
	defer far.Close()
	dial := tenure.Dial(func(context.Context, string, string) (net.Conn, error) { return near, nil })
	conn, err := dial(t.Context(), "tcp", "member")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = conn.Write([]byte("in time")) }()
	got := make([]byte, 7)
	if _, err := io.ReadFull(far, got); err != nil || string(got) != "in time" {
		t.Fatalf("%q, %v", got, err)
	}
	clock.Step(RenewDeadline)
	if n, err := conn.Write([]byte("too late")); n != 0 || !errors.Is(err, ErrOver) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if rest, err := io.ReadAll(far); err != nil || len(rest) > 0 {
		t.Errorf("the member got %q, %v", rest, err)
	}
}

func TestGivingUp(t *testing.T) {
	cases := map[string]struct {
		before func(t *Tenure, c *clocktesting.FakeClock)
		want   string // empty: others may begin at once
	}{
		"with nothing under way": {func(*Tenure, *clocktesting.FakeClock) {}, ""},
		"with a write under way": {func(t *Tenure, _ *clocktesting.FakeClock) { _, _, _ = t.enter() }, "1 writes to members are under way"},
		"after a write that was answered": {func(t *Tenure, _ *clocktesting.FakeClock) {
			_, leave, _ := t.enter()
			leave(true)
		}, ""},
		"after a write that was not": {func(t *Tenure, _ *clocktesting.FakeClock) {
			_, leave, _ := t.enter()
			leave(false)
		}, "may still take effect"},
		"long after a write that was not": {func(t *Tenure, c *clocktesting.FakeClock) {
			_, leave, _ := t.enter()
			leave(false)
			c.Step(RenewDeadline)
		}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenure, clock := began(t)
			c.before(tenure, clock)
			err := tenure.giveUp()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if tenure.Holds() == nil {
				t.Error("it is held still")
			}
		})
	}
}

func TestWatchSaysWhy(t *testing.T) {
	tenure, clock := began(t)
	done := make(chan error, 1)
	go func() { done <- tenure.Watch(t.Context()) }()
	for {
		select {
		case err := <-done:
			if !errors.Is(err, ErrOver) {
				t.Error(err)
			}
			return
		default:
			clock.Step(watchPeriod)
		}
	}
}
