package inspection

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/describe"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newDescribeCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	flags := describe.NewDescribeFlags(nil, genericiooptions.IOStreams{})
	cmd := &cobra.Command{
		Use:   "describe KIND [NAME-PREFIX | -l LABEL] | KIND/NAME | -f FILE",
		Short: "Show objects in detail, with their events",
		Long: `Show objects of the control plane in detail, with their events; or those of the
cluster that --cluster names.`,
		Example: `  flotilla describe cluster eu-1
  flotilla describe propagationpolicy web -n shop
  flotilla describe pod -l app=web -n shop -C eu-1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := scope.One()
			if err != nil {
				return err
			}
			if len(args) == 0 && cmdutil.IsFilenameSliceEmpty(flags.FilenameOptions.Filenames, flags.FilenameOptions.Kustomize) {
				return command.Usage(errors.New("KIND is missing: flotilla describe deployment web -n shop"))
			}
			flags.Factory, flags.IOStreams = f.Server(cluster, fleet.Timeout), streams(cmd)
			options, err := flags.ToOptions("flotilla", args)
			if err != nil {
				return fleet.Completed(err)
			}
			return fleet.MissingCluster(cmd.Context(), f, described(f, cluster, fleet.Until(cmd.Context(), options.Run)))
		},
	}
	cmd.ValidArgsFunction = completeObjects(f, &scope)
	scope.AddTo(cmd, f, fleet.ScopeHub, fleet.ScopeMembers)
	flags.AddFlags(cmd)
	return cmd
}
