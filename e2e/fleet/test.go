package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Slack is how many times as long as on an idle machine a step may take: builds and
// other tests go on beside it.
const Slack = 4

// startTimeout is how long a fleet may take to start.
const startTimeout = 10 * time.Minute

// Until waits until check returns nil, looking every so often. If that takes too long
// it returns what check returned last.
func Until(ctx context.Context, every, within time.Duration, check func(ctx context.Context) error) error {
	last := errors.New("it was never looked at")
	err := wait.PollUntilContextTimeout(ctx, every, within, true, func(ctx context.Context) (bool, error) {
		found := check(ctx)
		if found == nil || ctx.Err() == nil {
			last = found // not that the time is up
		}
		return found == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %s: %w", within, last)
	}
	return nil
}

// Eventually waits until check returns nil, and fails the test with its last answer,
// and what the fleet was doing, if it does not. Within is how long that takes at most on
// an idle machine.
func (f *Fleet) Eventually(t testing.TB, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	f.Before(t, Slack*within, what, check)
}

// Before is like Eventually, for what must not wait for something that takes as long as
// that on any machine.
func (f *Fleet) Before(t testing.TB, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	if err := Until(t.Context(), 100*time.Millisecond, within, check); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, f.Evidence(t))
	}
}

// Main runs the tests of a package on one fleet, which start makes in the folder that it
// is given. It returns the exit code. Where something failed the folder stays: logs are
// in it.
func Main(ctx context.Context, m *testing.M, start func(ctx context.Context, dir string) (stop func() error, err error)) int {
	dir, err := os.MkdirTemp("", "flotilla-e2e-") // short enough for a socket
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	stop, err := start(starting, dir)
	if err != nil {
		fmt.Fprintf(os.Stderr, "start the fleet: %v; logs are kept in %s\n", err, dir)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
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

// Folder makes one for a fleet of a test's own, short enough for a socket. It stays if
// the test fails: logs are in it.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flotilla-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	return dir
}

// Own starts a fleet for one test, with members that are joined, and stops it after.
func Own(t testing.TB, opts Options) *Fleet {
	t.Helper()
	f, err := StartJoined(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}
