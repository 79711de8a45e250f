package program

import (
	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/sandbox"
)

// buildCommand is how the program starts itself to build what is large.
const buildCommand = "build"

// builds returns what runs builds in processes of this program; nil if it is not
// this program that runs, but another one that has its commands.
func (o Options) builds() build.Runner {
	if !o.self {
		return nil
	}
	return sandbox.New(sandbox.Limits{}, sandbox.Self, buildCommand)
}

// newBuildCommand is the process of one build. It is started by the loops alone.
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
