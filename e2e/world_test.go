package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// memberNames are the clusters that every test finds joined.
var memberNames = []string{"east", "edge", "west"}

// regions says where the members are.
var regions = map[string]string{"east": "eu", "edge": "asia", "west": "us"}

// world is the fleet that the tests of this package share.
type world struct {
	*localfleet.Fleet
	hub     client.Client
	members map[string]client.Client
	dir     string
}

// the is set by TestMain, before any test runs.
var the *world

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e starts processes: skipped with -short")
		return
	}
	// The fleet that all share remembers what came before: these tests keep their order.
	if err := flag.Set("test.shuffle", "off"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(withWorld(m))
}

func withWorld(m *testing.M) int {
	dir, err := os.MkdirTemp("", "flotilla-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	the, err = startWorld(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the fleet:", err)
		return 1
	}
	code := m.Run()
	if err := the.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the fleet:", err)
		code = 1
	}
	if err := the.calm(); err != nil {
		fmt.Fprintln(os.Stderr, err)
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
		Flotillad: program("flotillad"),
		Dir:       dir,
		Members:   memberNames,
		HubArgs:   append(pullFlags, localfleet.LoopbackSources),
	})
	if err != nil {
		return nil, err
	}
	w := &world{Fleet: fleet, members: map[string]client.Client{}, dir: dir}
	if err := w.connect(ctx); err != nil {
		return nil, errors.Join(err, fleet.Stop())
	}
	return w, nil
}

// connect makes the clients and joins the members, as a user would.
func (w *world) connect(ctx context.Context) error {
	var err error
	if w.hub, err = clientOf(w.Hub); err != nil {
		return err
	}
	for name, member := range w.Members {
		if w.members[name], err = clientOf(member); err != nil {
			return err
		}
		_, err := run(ctx, nil, "flotilla", "join", name, "--kubeconfig", w.Hub.Kubeconfig,
			"--cluster-kubeconfig", member.Kubeconfig, "--cluster-context", name, "--cluster-region", regions[name])
		if err != nil {
			return err
		}
	}
	return nil
}

// calm errs if a program had to recover from a panic: its loops go on, later,
// so that no test need have noticed.
func (w *world) calm() error {
	return calm(slices.AppendSeq([]*localfleet.Process{w.Hub}, maps.Values(w.Members))...)
}

func calm(programs ...*localfleet.Process) error {
	var all []error
	for _, p := range programs {
		log, err := os.ReadFile(p.Log)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(log) {
			if bytes.Contains(line, []byte("Observed a panic")) {
				all = append(all, fmt.Errorf("%s panicked: %s", p.Name, line))
				break
			}
		}
	}
	return errors.Join(all...)
}

func clientOf(p *localfleet.Process) (client.Client, error) {
	cfg, err := p.Config()
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme.New()})
}

// program is the path of a built program.
func program(name string) string {
	path, err := filepath.Abs(filepath.Join("..", "bin", name))
	if err != nil {
		return name
	}
	return path
}

// run executes a built program and returns what it printed. The error carries
// all of it, and the exit code for those who ask.
func run(ctx context.Context, stdin []byte, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program(name), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
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

// slack is how many times as long as on an idle machine a step may take: builds and
// other tests go on beside it.
const slack = 4

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
	last := errors.New("it was never looked at")
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		found := check(ctx)
		if found == nil || ctx.Err() == nil {
			last = found // not that the time is up
		}
		return found == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %s: %v\n%s", what, within, last, the.evidence(t))
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
