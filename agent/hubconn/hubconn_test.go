package hubconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/agent/hubconn"
	"github.com/flotilla-io/flotilla/internal/hub"
)

// wire is a hub as its clients reach it.
type wire struct {
	mu    sync.Mutex
	sent  int
	reply func(*http.Request) (*http.Response, error)
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.sent++
	reply := w.reply
	w.mu.Unlock()
	return reply(req)
}

func (w *wire) set(reply func(*http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reply = reply
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

var errCut = errors.New("the link is cut")

func cut(*http.Request) (*http.Response, error) { return nil, errCut }

func answer(code int, content string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader(content)),
		Header: http.Header{"Date": []string{time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat)}},
	}
}

// is is a hub with an identity.
func is(uid string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return answer(http.StatusOK, `{"metadata":{"name":"kube-system","uid":"`+uid+`"}}`), nil
	}
}

func says(code int) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return answer(code, "{}"), nil }
}

// bench is a connection under test with both of its wires.
type bench struct {
	*hubconn.Connection
	probe, use wire
	through    http.RoundTripper
	mu         sync.Mutex
	reported   []string
}

func start(t *testing.T, o hubconn.Options, probe func(*http.Request) (*http.Response, error)) *bench {
	t.Helper()
	b := &bench{}
	b.probe.set(probe)
	b.use.set(says(http.StatusOK))
	o.Server, o.Probe = "https://hub", &b.probe
	b.Connection = hubconn.New(o)
	b.through = b.Wrap(&b.use)
	b.OnChange(func(away error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if away == nil {
			b.reported = append(b.reported, "there")
		} else {
			b.reported = append(b.reported, away.Error())
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
	return b
}

func (b *bench) ask(ctx context.Context, query string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://hub/apis/x"+query, nil)
	if err != nil {
		return err
	}
	got, err := b.through.RoundTrip(req)
	if err != nil {
		return err
	}
	return got.Body.Close()
}

func (b *bench) changes(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(want, b.reported); diff != "" {
		t.Errorf("what was told (-want +got):\n%s", diff)
	}
}

// pass lets time go by in the bubble of a test.
func pass(d time.Duration) { <-time.After(d) }

func TestHowOftenAHubThatIsAwayIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, hubconn.Options{}, cut)
		const hours = 24 * 7
		for range hours * 60 {
			for range 20 {
				err := b.ask(t.Context(), "")
				if !errors.Is(err, hub.ErrAway) || !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, errCut) {
					t.Fatalf("a request ended with %v", err)
				}
			}
			pass(time.Minute)
		}
		if sent := b.use.count(); sent != 0 {
			t.Errorf("%d requests were sent to a hub that is away", sent)
		}
		if most, sent := hours*3600/27+10, b.probe.count(); sent > most || sent < most/2 {
			t.Errorf("the hub was looked for %d times in %d hours, want about every 30 s", sent, hours)
		}
		b.changes(t, errCut.Error())
		b.probe.set(is("a"))
		pass(34 * time.Second) // more than the longest pause, however it varies
		if err := b.ask(t.Context(), ""); err != nil {
			t.Errorf("a request after the hub is back: %v", err)
		}
		if off := b.Skew() - 10*time.Minute; off.Abs() > 2*time.Second { // dates have whole seconds
			t.Errorf("skew %s", b.Skew())
		}
		b.changes(t, errCut.Error(), "there")
		if back := time.Since(b.Since()); b.Since().IsZero() || back > 35*time.Second {
			t.Errorf("it is there for %s", back)
		}
	})
}

// TestTheSkewIsThatOfTheLastAnswer: a clock that is set while the hub is there is noticed.
func TestTheSkewIsThatOfTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, hubconn.Options{}, is("a"))
		b.use.set(func(*http.Request) (*http.Response, error) {
			out := answer(http.StatusOK, "{}")
			out.Header.Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			return out, nil
		})
		if err := b.ask(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if off := b.Skew() + time.Hour; off.Abs() > 2*time.Second { // dates have whole seconds
			t.Errorf("skew %s", b.Skew())
		}
	})
}

func TestWhatTurnsAHubAway(t *testing.T) {
	const other = `another hub answers at https://hub: its kube-system namespace has the UID b, and it was a before`
	cases := map[string]struct {
		probe, use func(*http.Request) (*http.Response, error)
		known      string
		want       []string
		reaches    bool
	}{
		"one that is well":                        {probe: is("a"), use: says(200), want: []string{"there"}, reaches: true},
		"one that is the one it was":              {probe: is("a"), use: says(200), known: "a", want: []string{"there"}, reaches: true},
		"one that refuses a single request":       {probe: is("a"), use: says(403), want: []string{"there"}, reaches: true},
		"one that has too much to do":             {probe: is("a"), use: says(429), want: []string{"there"}, reaches: true},
		"one that shows its identity to nobody":   {probe: says(403), use: says(200), want: []string{"there"}, reaches: true},
		"another one":                             {probe: is("b"), use: says(200), known: "a", want: []string{other}},
		"one that does not say any more":          {probe: says(403), use: says(200), known: "a", want: []string{"the hub refuses the credentials: it does not say who it is any more"}},
		"one that refuses the credentials":        {probe: says(401), use: says(200), want: []string{"the hub refuses the credentials"}},
		"one that is not there any more":          {probe: says(404), use: says(200), known: "a", want: []string{`it answers "Not Found" when asked for its kube-system namespace`}},
		"something else at its address":           {probe: says(200), use: says(200), want: []string{"what answers is no Kubernetes API: it has no kube-system namespace"}},
		"a proxy before one that is away":         {probe: says(502), use: says(200), want: []string{`it answers "Bad Gateway" when asked for its kube-system namespace`}},
		"one that ceases to take the credentials": {probe: is("a"), use: says(401), want: []string{"there", "the hub refuses the credentials"}},
		"one whose proxy finds it no more":        {probe: is("a"), use: says(503), want: []string{"there", "it answers Service Unavailable"}},
		"one whose link is cut":                   {probe: is("a"), use: cut, want: []string{"there", errCut.Error()}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, hubconn.Options{Known: c.known}, c.probe)
				b.use.set(c.use)
				err := b.ask(t.Context(), "")
				if reached := err == nil; reached != c.reaches || !reached && !errors.Is(err, hub.ErrAway) {
					t.Errorf("a request ended with %v", err)
				}
				b.changes(t, c.want...)
			})
		})
	}
}

func TestAHubThatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, hubconn.Options{}, is("a"))
		b.use.set(says(http.StatusServiceUnavailable))
		for range 3600 {
			_ = b.ask(t.Context(), "")
			pass(time.Second)
		}
		if sent := b.use.count() + b.probe.count(); sent > 300 {
			t.Errorf("%d requests in an hour to a hub that serves nothing", sent)
		}
	})
}

func TestAHintIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, hubconn.Options{}, says(http.StatusUnauthorized))
		pass(10 * time.Minute)
		b.probe.set(is("a"))
		b.Hint()
		synctest.Wait()
		if err := b.ask(t.Context(), ""); err != nil {
			t.Errorf("a request after a hint: %v", err)
		}
	})
}

func TestAnIdentityThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, hubconn.Options{Learned: func(string) error { return errors.New("the disk is full") }}, is("a"))
		if err := b.ask(t.Context(), ""); !errors.Is(err, hub.ErrAway) {
			t.Errorf("a request to a hub that could not be told from another: %v", err)
		}
		b.changes(t, "keep the identity of the hub: the disk is full")
	})
}

// An agent may be heard before its rights are there: the hub's identity is asked for
// again, or any other hub would do later.
func TestAHubThatSaysLaterWhoItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		learned := ""
		b := start(t, hubconn.Options{Learned: func(identity string) error {
			learned = identity
			return nil
		}}, says(http.StatusForbidden))
		if err := b.ask(t.Context(), ""); err != nil {
			t.Errorf("a request to a hub that does not say who it is: %v", err)
		}
		pass(10 * time.Minute)
		if sent := b.probe.count(); sent > 25 {
			t.Errorf("asked %d times in ten minutes", sent)
		}
		b.probe.set(is("a"))
		pass(time.Minute)
		sent := b.probe.count()
		pass(10 * time.Minute)
		synctest.Wait()
		if learned != "a" || b.Identity() != "a" || b.probe.count() != sent {
			t.Errorf("learned %q and asked %d times more", learned, b.probe.count()-sent)
		}
		b.changes(t, "there")
	})
}

func TestHowLongAnAnswerMayTake(t *testing.T) {
	never := func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	cases := map[string]struct {
		query string
		after time.Duration // the caller gives up; zero: never
		want  time.Duration
		away  bool
	}{
		"of a request":                         {want: 30 * time.Second, away: true},
		"of a watch":                           {query: "?watch=true", after: time.Hour, want: time.Hour},
		"of a request that nobody needs more":  {after: time.Second, want: time.Second},
		"of a watch that nobody looks at more": {query: "?watch=1", after: time.Second, want: time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, hubconn.Options{}, is("a"))
				b.use.set(never)
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.after > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.after)
				}
				defer cancel()
				since := time.Now()
				err := b.ask(ctx, c.query)
				if took := time.Since(since); took != c.want || errors.Is(err, hub.ErrAway) != c.away {
					t.Errorf("ended after %s with %v, want %s, away %t", took, err, c.want, c.away)
				}
			})
		})
	}
}

func TestRequestsBeforeTheFirstLookWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(req *http.Request) (*http.Response, error) {
			pass(3 * time.Second)
			return is("a")(req)
		}
		b := start(t, hubconn.Options{}, slow)
		since := time.Now()
		if err := b.ask(t.Context(), ""); err != nil || time.Since(since) != 3*time.Second {
			t.Errorf("ended after %s with %v", time.Since(since), err)
		}
	})
}

// TestAHubThatIsNotListenedTo: what is picked is refused, and ends where it is under
// way; all else goes on, and the hub is looked at as one that is away.
func TestAHubThatIsNotListenedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var held error
		probes := 0
		b := start(t, hubconn.Options{
			Meet: func(_ context.Context, system *metav1.PartialObjectMetadata) error {
				mu.Lock()
				defer mu.Unlock()
				probes++
				if system.UID != "a" {
					t.Errorf("asked about %v", system)
				}
				return held
			},
			Refuses: func(req *http.Request) bool { return req.URL.Query().Has("picked") },
		}, is("a"))
		turn := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			held = err
		}
		b.use.set(func(req *http.Request) (*http.Response, error) {
			out := answer(http.StatusOK, "")
			if req.URL.Query().Has("watch") {
				out.Body = &endless{req.Context()}
			}
			return out, nil
		})
		watch := func(query string) (io.ReadCloser, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://hub/apis/x"+query, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.through.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			return got.Body, nil
		}
		picked, err := watch("?watch=true&picked")
		if err != nil {
			t.Fatal(err)
		}
		other, err := watch("?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		whole := b.Whole()
		turn(fmt.Errorf("%w: set back", hub.ErrHeld))
		b.Suspect()
		pass(time.Minute)
		b.changes(t, "there", hub.ErrHeld.Error()+": set back")
		if _, err := picked.Read(make([]byte, 1)); err == nil {
			t.Error("what is picked goes on")
		}
		if err := b.ask(t.Context(), "?picked"); !errors.Is(err, hub.ErrAway) || b.Held() == nil || b.Away() != nil {
			t.Errorf("what is picked ends with %v; held: %v, away: %v", err, b.Held(), b.Away())
		}
		if err := b.ask(t.Context(), ""); err != nil {
			t.Errorf("all else ends with %v", err)
		}
		select {
		case <-b.Back():
		default:
			t.Error("the hub does not count as there")
		}
		if b.Whole() == whole {
			t.Error("the hub counts as one to be listened to")
		}
		mu.Lock()
		before := probes
		mu.Unlock()
		pass(time.Hour)
		if n := b.HoldCount(); n != 1 {
			t.Errorf("%d holds are counted", n)
		}
		mu.Lock()
		if n := probes - before; n < 100 || n > 150 {
			t.Errorf("%d looks in an hour", n)
		}
		mu.Unlock()
		go func() { _, _ = other.Read(make([]byte, 1)) }()
		turn(nil)
		b.Hint()
		b.changes(t, "there", hub.ErrHeld.Error()+": set back", "there")
		<-b.Whole()
		if err := b.ask(t.Context(), "?picked"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		turn(errors.New("it does not say"))
		b.Suspect()
		pass(time.Minute)
		if b.Away() == nil || b.ask(t.Context(), "") == nil {
			t.Error("a hub that does not say what is asked counts as there")
		}
	})
}

// endless is a body that nothing comes from until its request ends.
type endless struct{ ctx context.Context }

func (e *endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (*endless) Close() error { return nil }
