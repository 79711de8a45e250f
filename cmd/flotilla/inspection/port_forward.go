package inspection

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/portforward"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newPortForwardCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	var addresses []string
	cmd := &cobra.Command{
		Use:   "port-forward (POD | KIND/NAME) [LOCAL:]REMOTE...",
		Short: "Bring ports of a pod in a member to this machine",
		Long: `Bring ports of a pod in a member to this machine, until you interrupt it.

Without --cluster the pod is looked for in all members; there must be one that has
it.`,
		Example: `  flotilla port-forward deployment/web 8080:80 -n shop -C eu-1
  flotilla port-forward web-7d4b9 :80 -n shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return command.Usage(errors.New("a pod or its ports are missing: flotilla port-forward web-7d4b9 8080:80"))
			}
			ctx := cmd.Context()
			cluster, err := locate(ctx, f, &scope, cmd.ErrOrStderr(), args[:1])
			if err != nil {
				return err
			}
			options := portforward.NewDefaultPortForwardOptions(streams(cmd))
			options.Address = addresses
			err = fleet.Until(ctx, func() error { return options.Complete(f.Server(cluster, 0), cmd, args) })
			if err != nil {
				return completed(f, cluster, err)
			}
			if err := options.Validate(); err != nil {
				return command.Usage(err)
			}
			return described(f, cluster, forward(ctx, options))
		},
	}
	cmd.ValidArgsFunction = completePods(f, &scope)
	scope.AddClustersTo(cmd, f, whichCluster)
	cmdutil.AddPodRunningTimeoutFlag(cmd, podTimeout)
	cmd.Flags().StringSliceVar(&addresses, "address", []string{"localhost"}, "addresses of this machine to listen on")
	return cmd
}

// forward returns when the pod ends or ctx does.
func forward(ctx context.Context, options *portforward.PortForwardOptions) error {
	if err := options.RunPortForwardContext(ctx); err != nil {
		return err
	}
	return ctx.Err()
}
