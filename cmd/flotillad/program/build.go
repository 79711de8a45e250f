package program

import (
	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/sandbox"
)

// buildCommand is the command with which the program starts itself to run a build.
const buildCommand = "build"

// builds returns a runner that runs builds in processes of this program; nil if the commands
// run in another program.
func (o Options) builds() build.Runner {
	if !o.self {
		return nil
	}
	return sandbox.New(sandbox.Limits{}, sandbox.Self, buildCommand)
}

// newBuildCommand returns the command that runs one build. Only the loops start it.
func newBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    buildCommand,
		Short:  "Build one order from standard input (the loops start this)",
		Hidden: true,
		Args:   command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandbox.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
