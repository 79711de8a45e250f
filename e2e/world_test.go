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
	f, err := fleet.Start(ctx, fleet.Options{Dir: dir, Members: memberNames, HubArgs: append(pullFlags, localfleet.LoopbackSources)})
	if err != nil {
		return nil, err
	}
	the = of(f)
	for _, name := range memberNames {
		if err := f.Join(ctx, name, "--cluster-region", regions[name]); err != nil {
			return nil, errors.Join(err, f.Stop())
		}
	}
	buildAhead()
	return func() error { return errors.Join(f.Stop(), f.Calm()) }, nil
}

// own starts a fleet for one test, with members that are joined, and stops it after.
func own(t *testing.T, opts fleet.Options) *world {
	t.Helper()
	f, err := fleet.StartJoined(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	return of(f)
}

// run executes a built program and returns what it printed.
func run(ctx context.Context, stdin []byte, name string, args ...string) (string, error) {
	return fleet.Run(ctx, stdin, name, args...)
}

// kubectl runs kubectl against the control plane and fails the test if it does.
func (w *world) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := w.tryKubectl(t, stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) tryKubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	return run(t.Context(), []byte(stdin), "flotilla", append([]string{"kubectl", "--kubeconfig", w.Hub.Kubeconfig}, args...)...)
}

// apply writes manifests to the control plane and removes them after the test.
func (w *world) apply(t *testing.T, manifests string) {
	t.Helper()
	w.kubectl(t, manifests, "apply", "-f", "-")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), slack*time.Minute)
		defer cancel()
		_, err := run(ctx, []byte(manifests), "flotilla", "kubectl", "--kubeconfig", w.Hub.Kubeconfig,
			"delete", "--ignore-not-found", "--wait=false", "-f", "-")
		if err != nil {
			t.Error(err)
		}
	})
}

// slack is how many times as long as on an idle machine a step may take.
const slack = fleet.Slack

// eventually waits until check returns nil, and fails the test with its last answer,
// and what the fleet was doing, if it does not. Within is how long that takes at most on an idle machine.
func eventually(t *testing.T, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	before(t, slack*within, what, check)
}

// before is like eventually, for what must not wait for something that takes as long
// as that on any machine.
func before(t *testing.T, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	if err := fleet.Until(t.Context(), 100*time.Millisecond, within, check); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, the.evidence(t))
	}
}

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
