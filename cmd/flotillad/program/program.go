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
	// Name of the program; empty means flotillad.
	Name string
	// Version that --version shows; empty means what the build knows.
	Version string
	// Plugins are asked after the built-in ones; --plugins knows them by their
	// names.
	Plugins []framework.Plugin
	// Room bounds what fits on the nodes of clusters, besides what is built in: where pods are
	// to run apart, or are to be spread.
	Room []nodes.Plugin

	// self says that the process is this program, and may start itself once more.
	self bool
}

// Run runs the program by its arguments until it is done or stopped by
// SIGINT or SIGTERM, and returns its exit code.
func Run(o Options) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.self = true
	_ = timerslack.Set(timerslack.Usual) // without, rest costs more and nothing else is lost
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
