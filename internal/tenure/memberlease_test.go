package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// taker competes for the Lease, and records what it sends.
type taker struct {
	*tenure.MemberLease
	clients kubernetes.Interface
}

func newTaker(t *testing.T, cfg *rest.Config, name string, c clock.WithTicker) taker {
	t.Helper()
	return newTakerFor(t, cfg, name, c, tenure.Timings{LeaseDuration: 15 * time.Second, RenewDeadline: 12 * time.Second, RetryPeriod: 200 * time.Millisecond})
}

func newTakerFor(t *testing.T, cfg *rest.Config, name string, c clock.WithTicker, times tenure.Timings) taker {
	t.Helper()
	memberLease := tenure.NewMemberLease(tenure.MemberLeaseOptions{Config: cfg, Namespace: metav1.NamespaceSystem, Name: "member-lease", Identity: name, Clock: c, Timings: times})
	through := rest.CopyConfig(cfg)
	through.Dial = memberLease.Dial(through.Dial)
	through.Wrap(memberLease.Member)
	clients, err := kubernetes.NewForConfig(through)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- memberLease.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return taker{memberLease, clients}
}

func (k taker) write(t *testing.T, name string) error {
	t.Helper()
	_, err := k.clients.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// holds waits until the Lease is held, or is another's.
func (k taker) holds(t *testing.T, other string) {
	t.Helper()
	servertest.Until(t, "the Lease is known to be held by "+other, func() bool {
		return other == "" && k.Check() == nil || other != "" && k.OtherHolder() == other && errors.Is(k.Check(), tenure.ErrHeldByOther)
	})
}

// TestALeaseIsForOne: of two who want it one writes; the other reads, and has its turn
// when the first one lets go, lapses or is taken the Lease.
func TestALeaseIsForOne(t *testing.T) {
	env := hubs.Env(t)
	frozen := clocktesting.NewFakeClock(time.Now())
	var cut atomic.Bool
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &leaseless{next, &cut} })
	a := newTaker(t, cfg, "a", frozen)
	a.holds(t, "")
	b := newTaker(t, env.Config, "b", clock.RealClock{})
	b.holds(t, "a")
	if err := errors.Join(a.write(t, "first"), b.reads(t)); err != nil {
		t.Error(err)
	}
	if err := b.write(t, "early"); !errors.Is(err, tenure.ErrHeldByOther) || !strings.Contains(err.Error(), ": a") {
		t.Errorf("who does not have it writes: %v", err)
	}

	cut.Store(true)
	frozen.Step(time.Hour)
	if err := a.write(t, "late"); !errors.Is(err, tenure.ErrOver) || !errors.Is(err, tenure.ErrLeaseLost) {
		t.Errorf("who may have lost it writes: %v", err)
	}
	cut.Store(false)
	a.Yield()
	b.holds(t, "")
	a.Want()
	a.holds(t, "b")
	if err := errors.Join(b.write(t, "second"), a.reads(t)); err != nil {
		t.Error(err)
	}

	b.Yield()
	a.holds(t, "")
	if err := errors.Join(a.write(t, "third"), b.reads(t)); err != nil {
		t.Error(err)
	}
	if err := b.write(t, "yielded"); err == nil {
		t.Error("who gave it up writes")
	}
	b.Want()
	b.holds(t, "a")
	a.Yield()
	b.holds(t, "")

	admin, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	leases := admin.CoordinationV1().Leases(metav1.NamespaceSystem)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // who holds it renews it meanwhile
		lease, err := leases.Get(t.Context(), "member-lease", metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("c"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro())}
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.holds(t, "c")
	if err := b.write(t, "robbed"); !errors.Is(err, tenure.ErrHeldByOther) {
		t.Errorf("a program that lost the Lease to another writes: %v", err)
	}
}

// leaseless is a way to a member on which requests for Leases are lost when it is cut.
type leaseless struct {
	next http.RoundTripper
	cut  *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (l *leaseless) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.cut.Load() && strings.Contains(req.URL.Path, "/leases/") {
		return nil, errors.New("the line is cut")
	}
	return l.next.RoundTrip(req)
}

// TestWhoWakesSitsAgain: who was stopped for longer than its turn lasts takes the next one
// at once where nobody else holds the Lease, and no later than its way is there again; until
// then it waits, and after some time says for what.
func TestWhoWakesSitsAgain(t *testing.T) {
	env := hubs.Env(t)
	frozen := clocktesting.NewFakeClock(time.Now())
	var cut atomic.Bool
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &leaseless{next, &cut} })
	const deadline = time.Minute // for which the elector goes on with a turn that is over
	a := newTakerFor(t, cfg, "a", frozen, tenure.Timings{LeaseDuration: 2 * deadline, RenewDeadline: deadline, RetryPeriod: 200 * time.Millisecond})
	a.holds(t, "")
	if err := a.write(t, "before"); err != nil {
		t.Fatal(err)
	}
	woke := time.Now()
	frozen.Step(time.Hour)
	servertest.Until(t, "the change is written", func() bool { return a.write(t, "after") == nil })
	if took := time.Since(woke); took > deadline/2 {
		t.Errorf("it took %s to acquire the Lease again", took)
	}

	cut.Store(true)
	frozen.Step(time.Hour)
	if err := a.write(t, "waits"); !errors.Is(err, tenure.ErrLeaseLost) {
		t.Errorf("a program without the Lease writes: %v", err)
	}
	servertest.Until(t, "it is told what it waits for", func() bool {
		frozen.Step(deadline / 4)
		err := a.Check()
		return errors.Is(err, tenure.ErrOver) && !errors.Is(err, tenure.ErrLeaseLost) && strings.Contains(err.Error(), "the line is cut")
	})
	cut.Store(false)
	a.holds(t, "")
}

// TestWhatIsWaitedForIsTheLatest: what is reported of a Lease that is not held is what became of
// the latest try, not of the first one, and not that an earlier turn is over.
func TestWhatIsWaitedForIsTheLatest(t *testing.T) {
	frozen := clocktesting.NewFakeClock(time.Now())
	var answer atomic.Pointer[string]
	answer.Store(ptr.To("the first answer"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, *answer.Load(), http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	a := newTaker(t, &rest.Config{Host: server.URL}, "a", frozen)
	if err := a.Await(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	frozen.Step(time.Minute)
	for _, says := range []string{"the first answer", "the second answer"} {
		answer.Store(&says)
		servertest.Until(t, "it is told that "+says+" is waited for", func() bool {
			return strings.Contains(a.Check().Error(), says)
		})
	}
}

// TestALeaseThatLastsForEver: a holder whose Lease is valid for years has it for as long
// as he is heard of, as everybody else.
func TestALeaseThatLastsForEver(t *testing.T) {
	env := hubs.Env(t)
	admin, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.CoordinationV1().Leases(metav1.NamespaceSystem).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "member-lease"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("stranger"), LeaseDurationSeconds: ptr.To[int32](315360000), RenewTime: ptr.To(metav1.NewMicroTime(time.Now().AddDate(10, 0, 0))),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := newTakerFor(t, env.Config, "a", clock.RealClock{}, tenure.Timings{LeaseDuration: time.Second, RenewDeadline: 900 * time.Millisecond, RetryPeriod: 100 * time.Millisecond})
	a.holds(t, "stranger")
	a.holds(t, "")
}

// TestADeletedLease: whoever waits for another does not take its place at once because the
// Lease is gone: the other one goes on until it finds that out, or knows that it is silent.
func TestADeletedLease(t *testing.T) {
	env := hubs.Env(t)
	var cut atomic.Bool
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &leaseless{next, &cut} })
	a := newTaker(t, cfg, "a", clocktesting.NewFakeClock(time.Now()))
	a.holds(t, "")
	var missed atomic.Int32
	cfg = rest.CopyConfig(env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &missing{next, &missed} })
	frozen := clocktesting.NewFakeClock(time.Now())
	b := newTaker(t, cfg, "b", frozen)
	b.holds(t, "a")

	cut.Store(true)
	admin, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	leases := admin.CoordinationV1().Leases(metav1.NamespaceSystem)
	if err := leases.Delete(t.Context(), "member-lease", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Until(t, "it finds the Lease gone again and again", func() bool { return missed.Load() > 2 })
	if err := b.write(t, "early"); !errors.Is(err, tenure.ErrHeldByOther) {
		t.Errorf("who waits writes beside the other: %v", err)
	}
	if err := a.write(t, "still"); err != nil {
		t.Error(err)
	}
	frozen.Step(15 * time.Second)
	b.holds(t, "")
}

// missing counts the Leases that are not there.
type missing struct {
	next  http.RoundTripper
	count *atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (m *missing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.next.RoundTrip(req)
	if err == nil && req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/leases/") && resp.StatusCode == http.StatusNotFound {
		m.count.Add(1)
	}
	return resp, err
}

// TestARefusalThatPasses: a program that has seen another holder does not go without
// because it may not look for a moment; where that lasts, it does.
func TestARefusalThatPasses(t *testing.T) {
	frozen := clocktesting.NewFakeClock(time.Now())
	var refuses atomic.Bool
	var refused atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(r.URL.Path, "/configmaps"):
			_, _ = fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one"}}`)
		case refuses.Load():
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			refused.Add(1)
		default:
			_, _ = fmt.Fprint(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"member-lease"},"spec":{"holderIdentity":"b","leaseDurationSeconds":15}}`)
		}
	}))
	t.Cleanup(server.Close)
	a := newTaker(t, &rest.Config{Host: server.URL}, "a", frozen)
	a.holds(t, "b")
	refuses.Store(true)
	servertest.Until(t, "it is refused again and again", func() bool { return refused.Load() > 2 })
	if err := a.write(t, "early"); !errors.Is(err, tenure.ErrHeldByOther) {
		t.Errorf("who may not look for a moment writes: %v", err)
	}
	frozen.Step(15 * time.Second)
	servertest.Until(t, "it goes without", func() bool { return a.write(t, "late") == nil })
	refuses.Store(false)
	a.holds(t, "b")
}

func (k taker) reads(t *testing.T) error {
	t.Helper()
	_, err := k.clients.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	return err
}

// TestIdentity: a folder has one, which its copy has not.
func TestIdentity(t *testing.T) {
	folder := t.TempDir()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	identity := func(folder string) string {
		is, err := tenure.Identity(folder)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if one, again, other := identity(folder), identity(folder), identity(copied); one != again || one == other {
		t.Errorf("%s, again %s, its copy %s", one, again, other)
	}
}

// TestWhereThereIsNoLease: a member that forbids Leases, or has none, is written to all
// the same; one that does not answer is not.
func TestWhereThereIsNoLease(t *testing.T) {
	for name, tc := range map[string]struct {
		code   int
		reason metav1.StatusReason
		open   bool
	}{
		"it forbids them":    {http.StatusForbidden, metav1.StatusReasonForbidden, true},
		"it has none":        {http.StatusNotFound, metav1.StatusReasonNotFound, true},
		"it has no answer":   {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, false},
		"it knows us not":    {http.StatusUnauthorized, metav1.StatusReasonUnauthorized, false},
		"it cannot say more": {http.StatusInternalServerError, metav1.StatusReasonInternalError, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(r.URL.Path, "/configmaps") {
					_, _ = fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one"}}`)
					return
				}
				w.WriteHeader(tc.code)
				_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, tc.reason, tc.code)
			}))
			t.Cleanup(server.Close)
			a := newTaker(t, &rest.Config{Host: server.URL}, "a", clock.RealClock{})
			if err := a.Await(t.Context(), func(string) {}); err != nil {
				t.Fatal(err)
			}
			if err := a.write(t, "one"); (err == nil) != tc.open || err != nil && !errors.Is(err, tenure.ErrOver) {
				t.Errorf("it is written to: %v", err)
			}
		})
	}
}
