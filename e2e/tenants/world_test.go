package tenants

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// tenant is who attacks: a user, and the namespace that it may edit.
const tenant = "red"

// slack is how many times as long as on an idle machine a step may take.
const slack = 4

// world is a fleet with two members, as its administrator and as the tenant.
type world struct {
	*localfleet.Fleet
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
	os.Exit(withWorld(m))
}

func withWorld(m *testing.M) int {
	dir, err := os.MkdirTemp("", "flotilla-tenants-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if the, err = startWorld(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, "start the fleet:", err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(the.Stop(), the.canary.listener.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "stop the fleet:", err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs are kept in", dir)
		return code
	}
	_ = os.RemoveAll(dir)
	return 0
}

func startWorld(ctx context.Context, dir string) (*world, error) {
	fleet, err := localfleet.Start(ctx, localfleet.Options{
		Flotillad: program("flotillad"), Dir: dir, Members: []string{"east", "west"}, Nodes: 1, HubArgs: hubArgs,
	})
	if err != nil {
		return nil, err
	}
	w := &world{Fleet: fleet, members: map[string]client.Client{}}
	if err := w.connect(ctx); err != nil {
		return nil, errors.Join(err, fleet.Stop())
	}
	return w, nil
}

// connect makes the clients, joins the members and listens where nobody may call.
func (w *world) connect(ctx context.Context) error {
	config, err := w.Hub.Config()
	if err != nil {
		return err
	}
	config.WarningHandler = rest.NoWarnings{}
	if w.hub, err = client.New(config, client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: tenant}
	if w.red, err = client.New(config, client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	for name, member := range w.Members {
		config, err := member.Config()
		if err != nil {
			return err
		}
		config.WarningHandler = rest.NoWarnings{}
		if w.members[name], err = client.New(config, client.Options{Scheme: scheme.New()}); err != nil {
			return err
		}
		if err := run(ctx, "flotilla", "join", name, "--kubeconfig", w.Hub.Kubeconfig,
			"--cluster-kubeconfig", member.Kubeconfig, "--cluster-context", name); err != nil {
			return err
		}
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

// program is the path of a built program.
func program(name string) string {
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		return name
	}
	return path
}

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, program(name), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// eventually waits until check returns nil, and fails the test with its last answer
// if it does not. Within is how long that takes at most on an idle machine.
func eventually(t *testing.T, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	last := errors.New("it was never looked at")
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, slack*within, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Errorf("%s: not within %s: %v", what, slack*within, last)
	}
}
