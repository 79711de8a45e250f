package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestLoopsApart runs the control plane without its loops, and the loops as a
// program of their own.
func TestLoopsApart(t *testing.T) {
	t.Parallel() // it has a fleet of its own
	f, err := fleet.Start(t.Context(), fleet.Options{Dir: t.TempDir(), Members: []string{"solo"}, HubArgs: []string{"--controllers=-*"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	join := []string{"join", "solo", "--kubeconfig", f.Hub.Kubeconfig, "--cluster-kubeconfig", f.Members["solo"].Kubeconfig, "--cluster-context", "solo"}
	out, err := run(t.Context(), nil, "flotilla", append(join, "--wait", "2s")...)
	if err != nil || !strings.Contains(out, "warning: cluster solo is not ready") {
		t.Errorf("without loops a cluster is not ready: %v\n%s", err, out)
	}

	loops := exec.CommandContext(context.WithoutCancel(t.Context()), fleet.Program("flotillad"), "controllers", "--kubeconfig", f.Hub.Kubeconfig,
		"--data-dir", t.TempDir(), "--metrics-bind-address=0", "--health-probe-bind-address=0")
	var log bytes.Buffer
	loops.Stdout, loops.Stderr = &log, &log
	loops.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := loops.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = loops.Process.Signal(syscall.SIGTERM)
		if err := loops.Wait(); err != nil {
			t.Errorf("the loops did not end cleanly: %v\n%s", err, log.String())
		}
	})
	eventually(t, 30*time.Second, "the loops find the cluster ready", func(ctx context.Context) error {
		out, err := run(ctx, nil, "flotilla", "kubectl", "--kubeconfig", f.Hub.Kubeconfig, "get", "clusters")
		if err == nil && !strings.Contains(out, "True") {
			err = fmt.Errorf("clusters are:\n%s", out)
		}
		return err
	})
}
