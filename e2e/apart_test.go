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

	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// TestLoopsApart runs the control plane without its loops, and the loops as a
// program of their own.
func TestLoopsApart(t *testing.T) {
	fleet, err := localfleet.Start(t.Context(), localfleet.Options{
		Flotillad: program("flotillad"), Dir: t.TempDir(), Members: []string{"solo"}, HubArgs: []string{"--controllers=-*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Stop(); err != nil {
			t.Error(err)
		}
	})
	join := []string{"join", "solo", "--kubeconfig", fleet.Hub.Kubeconfig, "--cluster-kubeconfig", fleet.Members["solo"].Kubeconfig, "--cluster-context", "solo"}
	out, err := run(t.Context(), nil, "flotilla", append(join, "--wait", "2s")...)
	if err != nil || !strings.Contains(out, "warning: cluster solo is not ready") {
		t.Errorf("without loops a cluster is not ready: %v\n%s", err, out)
	}

	loops := exec.CommandContext(context.WithoutCancel(t.Context()), program("flotillad"), "controllers", "--kubeconfig", fleet.Hub.Kubeconfig,
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
		out, err := run(ctx, nil, "flotilla", "kubectl", "--kubeconfig", fleet.Hub.Kubeconfig, "get", "clusters")
		if err == nil && !strings.Contains(out, "True") {
			err = fmt.Errorf("clusters are:\n%s", out)
		}
		return err
	})
}
