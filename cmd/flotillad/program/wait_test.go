package program

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// reported is the output of a command so far.
type reported struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *reported) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *reported) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// TestLoopsWaitForTheControlPlane starts the loops before the control plane that they
// are for.
func TestLoopsWaitForTheControlPlane(t *testing.T) {
	dir := t.TempDir()
	env, err := servertest.StartIn(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	log := &reported{}
	cmd := newControllersCommand(Options{})
	cmd.SetErr(log)
	cmd.SetOut(log)
	cmd.SetArgs([]string{"--kubeconfig", filepath.Join(dir, "admin.kubeconfig"), "--data-dir", t.TempDir(), "--metrics-bind-address", "0", "--health-probe-bind-address", "0"})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	until := func(what string, holds func(context.Context) bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
			select {
			case err := <-done:
				done <- err
				t.Fatalf("the loops ended: %v\n%s", err, log)
			default:
			}
			return holds(ctx), nil
		})
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, log)
		}
	}
	const line = "Waiting for the control plane"
	until("it says that it waits", func(context.Context) bool { return strings.Contains(log.String(), line) })
	if env, err = servertest.StartIn(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	until("it works", func(ctx context.Context) bool {
		epoch := &coordinationv1.Lease{}
		return env.Hub.Get(ctx, client.ObjectKey{Namespace: tenure.Namespace, Name: tenure.EpochName}, epoch) == nil
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("the loops ended with %v", err)
	}
	if all := log.String(); strings.Count(all, line) > 5 {
		t.Errorf("it says again and again that it waits:\n%s", all)
	}
}
