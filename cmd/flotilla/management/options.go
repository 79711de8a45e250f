package management

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "List the flags that all commands have",
		Example: "  flotilla options",
		Args:    command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Flags that all commands have:\n\n%s", cmd.Root().PersistentFlags().FlagUsagesWrapped(screen.Width(cmd.OutOrStdout())))
			return err
		},
	}
}
