package tenants

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// tenant is who attacks: a user, and the namespace that it may edit.
const tenant = "red"

// world is a fleet with two members, as its administrator and as the tenant.
type world struct {
	*fleet.Fleet
	hub, red client.Client
	members  map[string]client.Client
	canary   *canary
}

// the is set by TestMain, before any test runs.
var the *world

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e/tenants starts processes: skipped with -short")
		return
	}
	os.Exit(fleet.Main(context.Background(), m, startWorld))
}

func startWorld(ctx context.Context, dir string) (stop func() error, err error) {
	f, err := fleet.StartJoined(ctx, fleet.Options{Dir: dir, Members: []string{"east", "west"}, Nodes: 1, HubArgs: hubArgs})
	if err != nil {
		return nil, err
	}
	the = &world{Fleet: f, hub: f.Client, members: f.Clients}
	if err := the.infiltrate(ctx); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return func() error { return errors.Join(f.Stop(), f.Calm(), the.canary.listener.Close()) }, nil
}

// infiltrate makes the tenant's client, and listens where nobody may call.
func (w *world) infiltrate(ctx context.Context) error {
	config, err := w.Hub.Config()
	if err != nil {
		return err
	}
	config.WarningHandler = rest.NoWarnings{}
	config.Impersonate = rest.ImpersonationConfig{UserName: tenant}
	if w.red, err = client.New(config, client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	w.canary, err = listen(ctx)
	return err
}

// canary counts who calls where nobody may. It is at another address of this machine
// than the Git server, which the administrator allows.
type canary struct {
	listener net.Listener
	calls    atomic.Int64
}

func listen(ctx context.Context) (*canary, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.2:0")
	if err != nil {
		return nil, err
	}
	c := &canary{listener: listener}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.calls.Add(1)
			_ = conn.Close()
		}
	}()
	return c, nil
}

// eventually waits until check returns nil, and marks the test as failed, with its last
// answer, if it does not. Within is how long that takes at most on an idle machine.
func eventually(t *testing.T, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	if err := fleet.Until(t.Context(), 200*time.Millisecond, fleet.Slack*within, check); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
