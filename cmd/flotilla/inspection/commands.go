package inspection

import (
	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// Commands are those of this package.
func Commands(f *fleet.Flags) []*cobra.Command {
	return []*cobra.Command{
		newGetCommand(f), newDescribeCommand(f), newTopCommand(f),
		newLogsCommand(f), newExecCommand(f), newAttachCommand(f), newPortForwardCommand(f),
		newAPIResourcesCommand(f), newAPIVersionsCommand(f),
	}
}
