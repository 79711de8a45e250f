package inspection

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// Commands returns the commands of this package.
func Commands(f *fleet.Flags) []*cobra.Command {
	return []*cobra.Command{
		newGetCommand(f), newDescribeCommand(f), newTopCommand(f),
		newLogsCommand(f), newExecCommand(f), newAttachCommand(f), newPortForwardCommand(f),
		newAPIResourcesCommand(f), newAPIVersionsCommand(f),
	}
}

// nothingMore is cobra's NoArgs with an error in the form of the other commands.
func nothingMore(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return command.Usage(fmt.Errorf("%q is too much: %s", args[0], cmd.UseLine()))
	}
	return nil
}
