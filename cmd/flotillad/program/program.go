package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
	"github.com/flotilla-io/flotilla/internal/timerslack"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// Options are what a program adds to flotillad. The zero value adds nothing.
type Options struct {
	// Name is the name of the program; empty means flotillad.
	Name string
	// Version is what --version shows; empty means the version from the build information.
	Version string
	// Plugins run after the built-in ones; --plugins selects them by name.
	Plugins []framework.Plugin
	// Room limits what fits on the nodes of clusters, in addition to the built-in plugins, for
	// example where pods must run apart or be spread.
	Room []nodes.Plugin

	// self is true if the process runs this program, and may start itself for builds.
	self bool
}

// Run runs the program by its arguments until it is done or stopped by
// SIGINT or SIGTERM, and returns its exit code.
func Run(o Options) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.self = true
	_ = timerslack.Set(timerslack.Usual) // if it fails, an idle process only uses more CPU
	return command.Run(ctx, New(o))
}

// New returns the program's command.
func New(o Options) *cobra.Command {
	if o.Name == "" {
		o.Name = "flotillad"
	}
	cmd := &cobra.Command{
		Use:     o.Name,
		Short:   "The server side of a fleet of Kubernetes clusters",
		Version: telemetry.BuildVersion(o.Version).String(),
	}
	cmd.AddCommand(newServeCommand(o), newControllersCommand(o), newMemberCommand(), newEstimatorCommand(), newFlagsCommand(), newBuildCommand(),
		command.Version("Server", telemetry.BuildVersion(o.Version)))
	return cmd
}
