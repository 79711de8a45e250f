package management

import (
	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// Commands returns the commands about clusters, and about the program, which has this version.
func Commands(version string) func(f *fleet.Flags) []*cobra.Command {
	return func(f *fleet.Flags) []*cobra.Command {
		return []*cobra.Command{newCordon(f), newUncordon(f), newDrain(f), newTaint(f), newPrune(f), newVersion(f, version), newOptions()}
	}
}
