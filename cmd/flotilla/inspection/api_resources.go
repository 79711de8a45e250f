package inspection

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/apiresources"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newAPIResourcesCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	o := apiresources.NewAPIResourceOptions(genericiooptions.IOStreams{})
	cmd := &cobra.Command{
		Use:   "api-resources",
		Short: "List the kinds that the control plane or a member serves",
		Example: `  flotilla api-resources --api-group policy.karmada.io
  flotilla api-resources -C eu-1 -o wide`,
		Args: nothingMore,
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := scope.One()
			if err != nil {
				return err
			}
			o.IOStreams = streams(cmd)
			if err := o.Validate(); err != nil {
				return command.Usage(err)
			}
			if err := o.Complete(f.Server(cluster, fleet.Timeout), cmd, args); err != nil {
				return fleet.Completed(err)
			}
			return fleet.DescribeOf(cluster, fleet.Until(cmd.Context(), o.RunAPIResources))
		},
	}
	scope.AddTo(cmd, f, fleet.ScopeHub, fleet.ScopeMembers)
	o.PrintFlags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.APIGroup, "api-group", "", "kinds of this group only")
	flags.BoolVar(&o.Namespaced, "namespaced", true, "kinds that are in namespaces only, or with =false those that are not; default is both")
	flags.StringSliceVar(&o.Verbs, "verbs", nil, "kinds with all these verbs only")
	flags.StringVar(&o.SortBy, "sort-by", "", "name or kind")
	flags.BoolVar(&o.Cached, "cached", false, "take what was found out before, if there is something")
	flags.StringSliceVar(&o.Categories, "categories", nil, "kinds in all these categories only")
	return cmd
}
