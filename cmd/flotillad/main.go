// Command flotillad is the server side of a fleet: the control plane, its loops
// apart from it, and simulated member clusters for trying out.
//
// In go flags and a data directory; out come a Kubernetes-compatible API and
// kubeconfig files. SIGTERM stops every command cleanly.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, newCommand())
	stop()
	os.Exit(code)
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "flotillad",
		Short:   "The server side of a fleet of Kubernetes clusters",
		Version: telemetry.BuildVersion(version).String(),
	}
	cmd.AddCommand(newServeCommand(), newControllersCommand(), newMemberCommand())
	return cmd
}
