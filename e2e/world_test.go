package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// memberNames are the clusters that every test finds joined.
var memberNames = []string{"east", "edge", "west"}

// regions says where the members are.
var regions = map[string]string{"east": "eu", "edge": "asia", "west": "us"}

// world is a fleet, for those who test it: the one that the tests of this package share,
// or one of a test's own.
type world struct {
	*fleet.Fleet
	hub     client.Client
	members map[string]client.Client
	hooks   string // where the control plane listens for webhooks; empty for nowhere
}

// of returns what tests need of a fleet.
func of(f *fleet.Fleet) *world {
	return &world{Fleet: f, hub: f.Client, members: f.Clients}
}

// the is set by TestMain, before any test runs.
var the *world

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e starts processes: skipped with -short")
		return
	}
	os.Exit(fleet.Main(context.Background(), m, startWorld))
}

func startWorld(ctx context.Context, dir string) (stop func() error, err error) {
	port, err := localfleet.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	hooks := fmt.Sprintf("127.0.0.1:%d", port)
	f, err := fleet.Start(ctx, fleet.Options{Dir: dir, Members: memberNames, HubArgs: []string{localfleet.LoopbackSources, "--receiver-address=" + hooks}})
	if err != nil {
		return nil, err
	}
	the = of(f)
	the.hooks = hooks
	for _, name := range memberNames {
		if err := f.Join(ctx, name, "--cluster-region", regions[name]); err != nil {
			return nil, errors.Join(err, f.Stop())
		}
	}
	buildAhead()
	return func() error { return errors.Join(f.Stop(), f.Calm()) }, nil
}

// run executes a built program and returns what it printed.
func run(ctx context.Context, stdin []byte, name string, args ...string) (string, error) {
	return fleet.Run(ctx, stdin, name, args...)
}

// eventually waits until a check of the fleet that all share returns nil.
func eventually(t *testing.T, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	the.Eventually(t, within, what, check)
}

// slack is how many times as long as on an idle machine a step may take.
const slack = fleet.Slack

// inEveryMember is a check that holds only if it holds in each member.
func (w *world) inEveryMember(check func(ctx context.Context, name string, member client.Client) error) func(context.Context) error {
	return func(ctx context.Context) error {
		var all []error
		for _, name := range memberNames {
			if err := check(ctx, name, w.members[name]); err != nil {
				all = append(all, fmt.Errorf("in %s: %w", name, err))
			}
		}
		return errors.Join(all...)
	}
}
