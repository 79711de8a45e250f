package tenure_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// hubs lends the tests of this package control planes.
var hubs servertest.Pool

func TestMain(m *testing.M) { os.Exit(hubs.Main(m)) }

// candidate is one of the replicas that compete for the lease.
type candidate struct {
	*tenure.Lock
	hub kubernetes.Interface // as its loops have it
}

func enter(t *testing.T, cfg *rest.Config, c clock.WithTicker) candidate {
	t.Helper()
	term := tenure.New(c)
	lock, err := tenure.NewLock(cfg, term)
	if err != nil {
		t.Fatal(err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(term.Hub)
	hub, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return candidate{lock, hub}
}

// take has the candidate do what client-go's elector does once it may have the lease.
func (c candidate) take(t *testing.T) error {
	t.Helper()
	record := resourcelock.LeaderElectionRecord{HolderIdentity: c.Identity(), LeaseDurationSeconds: 15, RenewTime: metav1.Now()}
	if _, _, err := c.Get(t.Context()); err != nil {
		return c.Create(t.Context(), record)
	}
	return c.Update(t.Context(), record)
}

func (c candidate) write(t *testing.T, name string) error {
	t.Helper()
	_, err := c.hub.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// TestAnOldLeaderWritesNothing stops leaders, whose clocks stand still then, at
// different points and lets them go on when another one leads.
func TestAnOldLeaderWritesNothing(t *testing.T) {
	env := hubs.Env(t)
	now := func() *clocktesting.FakeClock { return clocktesting.NewFakeClock(time.Unix(1e9, 0)) }
	a, b := enter(t, env.Config, now()), enter(t, env.Config, now())
	if err := a.write(t, "early"); !errors.Is(err, tenure.ErrOver) {
		t.Errorf("before it led: %v", err)
	}
	if err := a.take(t); err != nil {
		t.Fatal(err)
	}
	if err := a.write(t, "first"); err != nil {
		t.Fatalf("as the leader: %v", err)
	}
	if err := b.take(t); err != nil {
		t.Fatal(err)
	}
	if err := b.write(t, "second"); err != nil {
		t.Errorf("as the next leader: %v", err)
	}
	if err := a.write(t, "late"); !errors.Is(err, tenure.ErrOver) {
		t.Errorf("as the old leader: %v", err)
	}
	if lost := a.Tenure().Lost(); lost == nil || !strings.Contains(lost.Error(), "taken over") {
		t.Errorf("the old leader thinks: %v", lost)
	}
	if err := a.take(t); !errors.Is(err, tenure.ErrOver) {
		t.Errorf("the old leader takes the lease: %v", err)
	}
	if err := a.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); !errors.Is(err, tenure.ErrOver) {
		t.Errorf("the old leader gives up the lease of the next: %v", err)
	}
	if err := b.write(t, "third"); err != nil {
		t.Errorf("as the leader still: %v", err)
	}

	t.Run("one that was stopped before it had an epoch", func(t *testing.T) {
		c, d := enter(t, env.Config, now()), enter(t, env.Config, now())
		if _, _, err := c.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		record := resourcelock.LeaderElectionRecord{HolderIdentity: c.Identity(), LeaseDurationSeconds: 15}
		if err := c.Interface.Update(t.Context(), record); err != nil { // and is stopped
			t.Fatal(err)
		}
		if err := d.take(t); err != nil {
			t.Fatal(err)
		}
		if epoch, err := c.NewEpoch(t.Context()); err == nil {
			t.Errorf("it made epoch %s", epoch)
		}
		if err := d.write(t, "fourth"); err != nil {
			t.Errorf("the leader lost its epoch: %v", err)
		}
	})
	t.Run("one that sees the next one first", func(t *testing.T) {
		e, f := enter(t, env.Config, now()), enter(t, env.Config, now())
		if err := errors.Join(e.take(t), f.take(t)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lost := e.Tenure().Lost(); lost == nil || !strings.Contains(lost.Error(), f.Identity()) {
			t.Errorf("it thinks: %v", lost)
		}
	})
	t.Run("one that gives up", func(t *testing.T) {
		g, h := enter(t, env.Config, now()), enter(t, env.Config, now())
		if err := g.take(t); err != nil {
			t.Fatal(err)
		}
		if err := g.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
			t.Error(err)
		}
		if record, _, err := h.Get(t.Context()); err != nil || record.HolderIdentity != "" {
			t.Errorf("the lease is %+v, %v", record, err)
		}
		if err := g.write(t, "after"); !errors.Is(err, tenure.ErrOver) || g.Tenure().Lost() != nil {
			t.Errorf("%v, lost: %v", err, g.Tenure().Lost())
		}
	})
	var made []string
	list, err := enter(t, env.Config, now()).hub.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Items {
		made = append(made, one.Name)
	}
	if got := strings.Join(made, " "); strings.Contains(got, "early") || strings.Contains(got, "late") || strings.Contains(got, "after") {
		t.Errorf("there are %s", got)
	}
}

// stopper ends a context once the first write of a Lease was answered.
type stopper struct {
	http.RoundTripper
	stop context.CancelFunc
}

func (s stopper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if r.Method != http.MethodGet {
		s.stop()
	}
	return resp, err
}

// TestALeaderThatIsStoppedAsItBegins: it has the lease and its epoch, or neither, so that its
// elector gives up what it has.
func TestALeaderThatIsStoppedAsItBegins(t *testing.T) {
	env := hubs.Env(t)
	ctx, stop := context.WithCancel(t.Context())
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return stopper{next, stop} })
	c := enter(t, cfg, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	if err := c.Create(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: c.Identity(), LeaseDurationSeconds: 15}); err != nil {
		t.Fatalf("it took the lease and does not know: %v", err)
	}
	if _, _, err := c.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
		t.Errorf("it does not give up the lease: %v", err)
	}
	late := enter(t, env.Config, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	if err := late.Create(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: late.Identity()}); !errors.Is(err, context.Canceled) {
		t.Errorf("one that was stopped before takes the lease: %v", err)
	}
}
