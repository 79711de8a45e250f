package program

import (
	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotillad/karmada"
	"github.com/flotilla-io/flotilla/internal/command"
)

// newFlagsCommand returns the command that lists what the flags of Karmada's components do
// here.
func newFlagsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "flags",
		Short: "List the flags, feature gates and controllers of Karmada, and what each does here",
		Args:  command.Exactly(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return karmada.Page(cmd.OutOrStdout()) },
	}
}
