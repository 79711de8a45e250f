package planning

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
)

// Commands returns the commands of this package.
func Commands(f *fleet.Flags) []*cobra.Command {
	return []*cobra.Command{newPlanCommand(f), newFleetCommand(f)}
}

func newFleetCommand(f *fleet.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fleet",
		Short:   "Export the fleet to a file, for plans without access to the control plane",
		Example: `  flotilla fleet export > fleet.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "export",
		Short: "Print all that decides what clusters hold, as a file for flotilla plan --fleet",
		Long: `Print all that decides what clusters hold, as a file for flotilla plan --fleet: clusters with
their room, policies, overrides, quotas, placements, and the templates. Who has the file needs
no access to the control plane to see what a change does.

No value of a Secret is in it, nothing into which text of a Secret was put, and nothing by which
clusters are reached.`,
		Example: `  flotilla fleet export > fleet.yaml
  flotilla plan . --base ../main --fleet fleet.yaml`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fleet.Describe(export(cmd.Context(), f, cmd.OutOrStdout()))
		},
	})
	return cmd
}

func export(ctx context.Context, f *fleet.Flags, out io.Writer) error {
	hub, err := f.Client()
	if err != nil {
		return err
	}
	s, err := snapshot.Of(ctx, hub, time.Now())
	if err != nil {
		return err
	}
	if err := s.ReadTaints(ctx, hub); err != nil {
		return err
	}
	content, err := s.Write()
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return err
}
