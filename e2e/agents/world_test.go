package agents

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
)

// Time in the tests of pull mode: an hour without the control plane is what ends an
// agent's certificate and has its cluster be given up on.
const (
	agentCertificate = 20 * time.Second
	silence          = 5 * time.Second
	// inVain is how long a replica waits for a node before it runs elsewhere.
	inVain = 20 * time.Second
)

// pushed are the members that the control plane writes to itself; nothing runs on edge.
var pushed = []string{"east", "edge", "west"}

// world is a fleet, for those who test it: the one that the tests of this package share,
// or one of a test's own.
type world struct {
	*fleet.Fleet
	hub     client.Client
	members map[string]client.Client
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
		fmt.Println("e2e/agents starts processes: skipped with -short")
		return
	}
	os.Exit(fleet.Main(context.Background(), m, startWorld))
}

func startWorld(ctx context.Context, dir string) (stop func() error, err error) {
	f, err := fleet.StartJoined(ctx, fleet.Options{Dir: dir, Members: pushed, HubArgs: []string{
		"--agent-certificate-duration", agentCertificate.String(), "--cluster-monitor-grace-period", silence.String(),
		"--controllers", "*,descheduler", "--descheduling-interval", "10s", "--unschedulable-threshold", inVain.String(),
	}})
	if err != nil {
		return nil, err
	}
	the = of(f)
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
